#pragma once

// What a kernel source may use. Every *.kernel.cc is compiled three times from one text: by nvcc
// for CUDA, by clang for HIP, and by the host compiler for the host back end. A kernel
//   - is declared `BM_KERNEL Name(Args args)` with one trivially copyable argument struct,
//   - needs no barrier and no shared memory (the host back end runs a block's threads one by one),
//   - gives results that do not depend on the launch shape,
//   - is listed in the file's BM_MODULE.

#include <stdint.h>  // NOLINT: <cstdint> is not available to every device compiler

#if defined(__HIP__)
#define BM_KERNEL extern "C" __attribute__((global)) void
#define BM_INLINE static inline __attribute__((device, always_inline))
#elif defined(__CUDACC__)
#define BM_KERNEL extern "C" __global__ void
#define BM_INLINE static __device__ __forceinline__
#else
#define BM_KERNEL static void
#define BM_INLINE inline
#define BM_HOST_CODE 1
#include "kernels/device/host/host_thread.h"
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
// HW_ID (register 4) bits 8..15 are compute unit, shader array and shader engine; on gfx942 XCC_ID
// (register 20) bits 0..3 name the die. The operand is (size - 1) << 11 | offset << 6 | register.
BM_INLINE uint32_t UnitId() {
  const uint32_t unit = __builtin_amdgcn_s_getreg((7 << 11) | (8 << 6) | 4);
#if defined(__gfx942__)
  return (__builtin_amdgcn_s_getreg((3 << 11) | 20) << 8) | unit;
#elif defined(__gfx90a__)
  return unit;
#else
#error "state how a wave learns its compute unit on this architecture"
#endif
}
BM_INLINE uint64_t Alu(uint64_t value) { return value; }

#elif defined(__CUDACC__)

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

#else

BM_INLINE uint32_t ThreadIndex() { return host_thread.thread; }
BM_INLINE uint32_t BlockIndex() { return host_thread.block; }
BM_INLINE uint32_t BlockThreads() { return host_thread.block_threads; }
BM_INLINE uint32_t GridThreads() { return host_thread.grid_threads; }
BM_INLINE uint32_t UnitId() { return host_thread.unit; }
// Where a simulated unit's arithmetic goes wrong; the identity on real devices.
BM_INLINE uint64_t Alu(uint64_t value) { return value ^ host_thread.alu_fault; }

#endif

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
