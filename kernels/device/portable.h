#pragma once

// What a kernel source may use. Every *.kernel.cc is compiled three times from one text: by nvcc
// for CUDA, by clang for HIP, and by the host compiler for the host back end. A kernel
//   - is declared `BM_KERNEL Name(Args args)` with one trivially copyable argument struct,
//   - needs no barrier and no shared memory (the host back end runs a block's threads one by one);
//     work that a wave does together is written against Lane() and kWaveLanes, and on the host,
//     where a wave has one lane, one thread does it alone,
//   - gives results that do not depend on the launch shape,
//   - is listed in the file's BM_MODULE.

#include <stdint.h>  // NOLINT: <cstdint> is not available to every device compiler

#if defined(__HIP__)
#define BM_KERNEL extern "C" __attribute__((global)) void
// A kernel that is never launched with more threads a block: it may use more registers.
#define BM_KERNEL_OF(threads) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, threads))) void
#define BM_INLINE static inline __attribute__((device, always_inline))
#elif defined(__CUDACC__)
#define BM_KERNEL extern "C" __global__ void
#define BM_KERNEL_OF(threads) extern "C" __global__ void __launch_bounds__(threads)
#define BM_INLINE static __device__ __forceinline__
#else
#define BM_KERNEL static void
#define BM_KERNEL_OF(threads) static void
#define BM_INLINE inline
#define BM_HOST_CODE 1
#include "kernels/device/host/host_thread.h"
#endif

// Before a loop whose every turn stands in the machine code.
#if defined(__HIP__) || defined(__CUDACC__)
#define BM_UNROLL _Pragma("unroll")
#else
#define BM_UNROLL
#endif

namespace bimetal::kernels {

// The part of 0..count-1 that this thread handles: begin, begin + step, ... below end.
struct Range {
  uint64_t begin;
  uint64_t end;
  uint64_t step;
};

#if defined(__HIP__)

BM_INLINE uint32_t ThreadIndex() { return __builtin_amdgcn_workitem_id_x(); }
BM_INLINE uint32_t BlockIndex() { return __builtin_amdgcn_workgroup_id_x(); }
BM_INLINE uint32_t BlockThreads() { return __builtin_amdgcn_workgroup_size_x(); }
BM_INLINE uint32_t GridThreads() { return __builtin_amdgcn_grid_size_x(); }
#if defined(__GFX9__)
constexpr uint32_t kWaveLanes = 64;
#else
constexpr uint32_t kWaveLanes = 32;
#endif
// CDNA: HW_ID (register 4) bits 8..15 are compute unit, shader array and shader engine; on gfx942
// and gfx950 XCC_ID (register 20) bits 0..3 name the die. RDNA 3: HW_ID1 (register 23) bits 10..13
// are the work-group processor, 16 the shader array, 18..20 the shader engine; HIP counts a
// work-group processor (two compute units) as one multiprocessor there, and so does this.
// The operand is (size - 1) << 11 | offset << 6 | register.
BM_INLINE uint32_t UnitId() {
#if defined(__gfx942__) || defined(__gfx950__)
  const uint32_t unit = __builtin_amdgcn_s_getreg((7 << 11) | (8 << 6) | 4);
  return (__builtin_amdgcn_s_getreg((3 << 11) | 20) << 8) | unit;
#elif defined(__gfx90a__)
  return __builtin_amdgcn_s_getreg((7 << 11) | (8 << 6) | 4);
#elif defined(__GFX11__)
  return __builtin_amdgcn_s_getreg((10 << 11) | (10 << 6) | 23) & 0x74fu;
#else
#error "state how a wave learns its compute unit on this architecture"
#endif
}
BM_INLINE uint64_t Alu(uint64_t value) { return value; }
BM_INLINE uint32_t AluWord(uint32_t value) { return value; }

#elif defined(__CUDACC__)

constexpr uint32_t kWaveLanes = 32;
BM_INLINE uint32_t ThreadIndex() { return threadIdx.x; }
BM_INLINE uint32_t BlockIndex() { return blockIdx.x; }
BM_INLINE uint32_t BlockThreads() { return blockDim.x; }
BM_INLINE uint32_t GridThreads() { return gridDim.x * blockDim.x; }
BM_INLINE uint32_t UnitId() {
  uint32_t unit;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
  return unit;
}
BM_INLINE uint64_t Alu(uint64_t value) { return value; }
BM_INLINE uint32_t AluWord(uint32_t value) { return value; }

#else

constexpr uint32_t kWaveLanes = 1;
BM_INLINE uint32_t ThreadIndex() { return host_thread.thread; }
BM_INLINE uint32_t BlockIndex() { return host_thread.block; }
BM_INLINE uint32_t BlockThreads() { return host_thread.block_threads; }
BM_INLINE uint32_t GridThreads() { return host_thread.grid_threads; }
BM_INLINE uint32_t UnitId() { return host_thread.unit; }
// Where a simulated unit's arithmetic goes wrong; the identity on real devices.
BM_INLINE uint64_t Alu(uint64_t value) { return value ^ host_thread.alu_fault; }
// The same for 32-bit results, which any bit of the fault reaches.
BM_INLINE uint32_t AluWord(uint32_t value) {
  return value ^ static_cast<uint32_t>(host_thread.alu_fault | host_thread.alu_fault >> 32);
}

#endif

// The place of a thread within its wave, and of the wave within its block.
BM_INLINE uint32_t Lane() { return ThreadIndex() % kWaveLanes; }
BM_INLINE uint32_t WaveIndex() { return ThreadIndex() / kWaveLanes; }
BM_INLINE uint32_t BlockWaves() { return BlockThreads() / kWaveLanes; }

// Sixteen bytes that are loaded and stored at once.
struct alignas(16) Quad {
  uint32_t word[4];
};

template <class To, class From>
BM_INLINE To BitCast(const From& value) {
  return __builtin_bit_cast(To, value);
}

BM_INLINE uint64_t GlobalThread() {
  return static_cast<uint64_t>(BlockIndex()) * BlockThreads() + ThreadIndex();
}

// Strided on a GPU (neighbouring threads touch neighbouring words), in one piece on the host.
BM_INLINE Range ThreadRange(uint64_t count) {
#if defined(BM_HOST_CODE)
  const uint64_t threads = GridThreads();
  const uint64_t share = (count + threads - 1) / threads;
  const uint64_t begin = GlobalThread() * share < count ? GlobalThread() * share : count;
  return {begin, begin + share < count ? begin + share : count, 1};
#else
  return {GlobalThread(), count, GridThreads()};
#endif
}

// A 64-bit finalizer (splitmix64): bijective, and each input bit reaches all output bits.
BM_INLINE uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

}  // namespace bimetal::kernels

// BM_MODULE(name, BM_ENTRY(KernelA, ArgsA), ...) closes a kernel source: the host back end's table.
#if defined(BM_HOST_CODE)
// clang-format off
#define BM_ENTRY(kernel, Args)        \
  ::bimetal::kernels::HostKernel {    \
    #kernel, sizeof(Args), &::bimetal::kernels::CallKernel<Args, kernel> \
  }
// clang-format on
#define BM_MODULE(name, ...)                                                    \
  namespace bimetal::kernels::host_modules {                                    \
  extern const ::bimetal::kernels::HostKernelTable name;                        \
  static const ::bimetal::kernels::HostKernel name##_entries[] = {__VA_ARGS__}; \
  const ::bimetal::kernels::HostKernelTable name = {                            \
      name##_entries, sizeof(name##_entries) / sizeof(name##_entries[0])};      \
  }
#else
#define BM_ENTRY(kernel, Args)
#define BM_MODULE(name, ...)
#endif
