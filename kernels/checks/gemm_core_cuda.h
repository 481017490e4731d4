#pragma once

// NVIDIA's matrix instructions (mma.sync of the PTX ISA). Included by gemm_core.h only.
//
// All warp-level shapes with 32-bit registers share one layout: lane l holds, of rows l/4 and
// l/4 + 8, the words l%4 of a slab of k. A slab's order within k is free as long as A and B agree,
// so each lane loads the 16 bytes at 16 (l%4) of its rows and uses them word by word.

#include "kernels/checks/gemm_core_plain.h"

namespace bimetal::kernels {

struct CudaOperand {
  Quad low;   // of row (A) or column (B) l/4
  Quad high;  // of l/4 + 8
};

// What every matrix-instruction core shares; `Derived` issues the instructions.
template <class T, uint32_t rows, uint32_t columns>
struct CudaCore {
  using Acc = T;
  using A = CudaOperand;
  using B = CudaOperand;
  static constexpr uint32_t kAccs = 8;
  static constexpr uint32_t kSteps = 1;
  static constexpr uint32_t kRows = rows;
  static constexpr uint32_t kColumns = columns;

  BM_INLINE CudaOperand LoadA(const Quad* panel, uint32_t) {
    const Quad* at = panel + (Lane() / 4) * 4 + Lane() % 4;
    return {at[0], at[8 * 4]};
  }
  BM_INLINE CudaOperand LoadB(const Quad* panel, uint32_t step) { return LoadA(panel, step); }
  BM_INLINE uint32_t Row(uint32_t i) { return QuarterRow(i); }
  BM_INLINE uint32_t Column(uint32_t i) { return QuarterColumn(i); }
};

// m16n8: four registers of A, two of B, four of C. `shape` is all behind "mma.sync.aligned.".
#define BM_MMA_16X8_FLOAT(shape, acc, a0, a1, a2, a3, b0, b1)                                     \
  asm volatile("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"((acc)[0]), "+f"((acc)[1]), "+f"((acc)[2]), "+f"((acc)[3])                   \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))

#define BM_MMA_16X8_INT(shape, acc, a0, a1, a2, a3, b0, b1)                                       \
  asm volatile("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+r"((acc)[0]), "+r"((acc)[1]), "+r"((acc)[2]), "+r"((acc)[3])                   \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))

// A core over an m16n8 shape that takes 32 bytes of k an instruction.
#define BM_CUDA_CORE_16X8(Name, T, columns, MMA, shape)                                       \
  struct Name : CudaCore<T, 4, columns> {                                                     \
    BM_INLINE void Multiply(T (&acc)[kAccs], const A& a, const B& b) {                        \
      _Pragma("unroll") for (uint32_t k = 0; k < 4; k += 2) {                                 \
        MMA(shape, acc, a.low.word[k], a.high.word[k], a.low.word[k + 1], a.high.word[k + 1], \
            b.low.word[k], b.low.word[k + 1]);                                                \
        MMA(shape, (acc + 4), a.low.word[k], a.high.word[k], a.low.word[k + 1],               \
            a.high.word[k + 1], b.high.word[k], b.high.word[k + 1]);                          \
      }                                                                                       \
    }                                                                                         \
  };

#if __CUDA_ARCH__ >= 800
BM_CUDA_CORE_16X8(CudaTf32Core, float, 4, BM_MMA_16X8_FLOAT, "m16n8k8.row.col.f32.tf32.tf32.f32")
BM_CUDA_CORE_16X8(CudaFp16Core, float, 4, BM_MMA_16X8_FLOAT, "m16n8k16.row.col.f32.f16.f16.f32")
BM_CUDA_CORE_16X8(CudaBf16Core, float, 4, BM_MMA_16X8_FLOAT, "m16n8k16.row.col.f32.bf16.bf16.f32")
BM_CUDA_CORE_16X8(CudaInt8Core, int32_t, 4, BM_MMA_16X8_INT, "m16n8k32.row.col.s32.s8.s8.s32")

// m8n8k4: one double of A and of B a lane.
struct CudaFp64Core : CudaCore<double, 2, 2> {
  BM_INLINE double Half(const Quad& quad, uint32_t i) {
    return BitCast<double>(static_cast<uint64_t>(quad.word[2 * i + 1]) << 32 | quad.word[2 * i]);
  }
  BM_INLINE void Mma(double* acc, double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(acc[0]), "+d"(acc[1])
                 : "d"(a), "d"(b));
  }
  BM_INLINE void Multiply(double (&acc)[kAccs], const A& a, const B& b) {
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k) {
      Mma(acc, Half(a.low, k), Half(b.low, k));
      Mma(acc + 2, Half(a.high, k), Half(b.low, k));
      Mma(acc + 4, Half(a.low, k), Half(b.high, k));
      Mma(acc + 6, Half(a.high, k), Half(b.high, k));
    }
  }
};
#else
// Turing: m16n8k8 for fp16, m8n8k16 for int8; both take one word of k.
struct CudaFp16Core : CudaCore<float, 4, 4> {
  BM_INLINE void Mma(float* acc, uint32_t a_low, uint32_t a_high, uint32_t b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a_low), "r"(a_high), "r"(b));
  }
  BM_INLINE void Multiply(float (&acc)[kAccs], const A& a, const B& b) {
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      Mma(acc, a.low.word[k], a.high.word[k], b.low.word[k]);
      Mma(acc + 4, a.low.word[k], a.high.word[k], b.high.word[k]);
    }
  }
};

struct CudaInt8Core : CudaCore<int32_t, 4, 4> {
  BM_INLINE void Mma(int32_t* acc, uint32_t a, uint32_t b) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(acc[0]), "+r"(acc[1])
                 : "r"(a), "r"(b));
  }
  BM_INLINE void Multiply(int32_t (&acc)[kAccs], const A& a, const B& b) {
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      Mma(acc, a.low.word[k], b.low.word[k]);
      Mma(acc + 2, a.high.word[k], b.low.word[k]);
      Mma(acc + 4, a.low.word[k], b.high.word[k]);
      Mma(acc + 6, a.high.word[k], b.high.word[k]);
    }
  }
};
using CudaFp64Core = PlainCore<double>;
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Hopper reaches its fp8 units by warp-group instructions alone (mma.sync is widened to fp16
// there). Four warps multiply together: each its own 16 rows of A, in the registers and the layout
// of the other cores, by columns of B that all share, which lie in shared memory. REQUIRES: the
// four waves of a warp group work on tiles of the same columns, in step.
struct WarpGroupCore : CudaCore<float, 4, 4> {
  static constexpr bool kWarpGroup = true;
  static constexpr uint32_t kThreads = 128;

  // Describes operand B of 8 x 16-byte core matrices without swizzling: bits 0..13 its
  // address, 16..29 the distance of core matrices along k, 32..45 that along n, all in units of 16
  // bytes.
  BM_INLINE uint64_t Describe(const void* at, uint32_t along_k, uint32_t along_n) {
    const uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(at));
    return (address & 0x3ffff) >> 4 | static_cast<uint64_t>(along_k >> 4) << 16 |
           static_cast<uint64_t>(along_n >> 4) << 32;
  }
  // Copies a chunk of N * 16 columns to shared memory, k in the order in which A's lanes use it: a
  // slab of 32 bytes takes of each lane's 16 bytes two words, one for either half.
  template <uint32_t N>
  BM_INLINE void Stage(const Quad* b_chunk, char* to) {
    for (uint32_t i = threadIdx.x % kThreads; i < N * kGemmFragment * 4; i += kThreads) {
      const uint32_t column = i / 4;
      const Quad quad = b_chunk[i];
      char* place = to + column / 8 * 128 + column % 8 * 16 + i % 4 * 4;
#pragma unroll
      for (uint32_t word = 0; word < 4; ++word) {
        *reinterpret_cast<uint32_t*>(place + word / 2 * (512 * N) + word % 2 * (256 * N)) =
            quad.word[word];
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    Join();
  }
  BM_INLINE void Join() {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + threadIdx.x / kThreads) : "memory");
  }
};

#define BM_WGMMA_D(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define BM_WARP_GROUP_CORE(Name, type)                                                            \
  struct Name : WarpGroupCore {                                                                   \
    BM_INLINE void Issue(float (&d)[8], const A& a, uint32_t k, uint64_t b) {                     \
      asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.f32." type "." type                    \
                   " {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, 1, 1, 1;"                   \
                   : BM_WGMMA_D(0), BM_WGMMA_D(4)                                                 \
                   : "r"(a.low.word[k]), "r"(a.high.word[k]), "r"(a.low.word[k + 1]),             \
                     "r"(a.high.word[k + 1]), "l"(b));                                            \
    }                                                                                             \
    BM_INLINE void Issue(float (&d)[32], const A& a, uint32_t k, uint64_t b) {                    \
      asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.f32." type "." type                    \
                   " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                     \
                   "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},"            \
                   " {%32,%33,%34,%35}, %36, 1, 1, 1;"                                            \
                   : BM_WGMMA_D(0), BM_WGMMA_D(4), BM_WGMMA_D(8), BM_WGMMA_D(12), BM_WGMMA_D(16), \
                     BM_WGMMA_D(20), BM_WGMMA_D(24), BM_WGMMA_D(28)                               \
                   : "r"(a.low.word[k]), "r"(a.high.word[k]), "r"(a.low.word[k + 1]),             \
                     "r"(a.high.word[k + 1]), "l"(b));                                            \
    }                                                                                             \
    template <uint32_t R, uint32_t N>                                                             \
    BM_INLINE void MultiplyTogether(float (&acc)[R][N][kAccs], const Quad* a_chunk,               \
                                    const Quad* b_chunk) {                                        \
      __shared__ alignas(128) char stage[2][1024 * N];                                            \
      char* own = stage[threadIdx.x / kThreads];                                                  \
      Stage<N>(b_chunk, own);                                                                     \
      A a[R];                                                                                     \
      _Pragma("unroll") for (uint32_t r = 0; r < R; ++r) {                                        \
        a[r] = LoadA(a_chunk + r * kGemmFragment * 4, 0);                                         \
      }                                                                                           \
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                     \
      _Pragma("unroll") for (uint32_t slab = 0; slab < 2; ++slab) {                               \
        const uint64_t b = Describe(own + slab * 512 * N, 256 * N, 128);                          \
        _Pragma("unroll") for (uint32_t r = 0; r < R; ++r) {                                      \
          Issue(reinterpret_cast<float(&)[8 * N]>(acc[r]), a[r], 2 * slab, b);                    \
        }                                                                                         \
      }                                                                                           \
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                              \
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                              \
      Join();                                                                                     \
    }                                                                                             \
  };
BM_WARP_GROUP_CORE(CudaE4m3Core, "e4m3")
BM_WARP_GROUP_CORE(CudaE5m2Core, "e5m2")
#elif __CUDA_ARCH__ >= 890
// Where mma.sync is widened to fp16 it needs more registers than a tile of 4 x 4 fragments leaves.
constexpr uint32_t kFp8Columns = __CUDA_ARCH__ >= 900 ? 2 : 4;
BM_CUDA_CORE_16X8(CudaE4m3Core, float, kFp8Columns, BM_MMA_16X8_FLOAT,
                  "m16n8k32.row.col.f32.e4m3.e4m3.f32")
BM_CUDA_CORE_16X8(CudaE5m2Core, float, kFp8Columns, BM_MMA_16X8_FLOAT,
                  "m16n8k32.row.col.f32.e5m2.e5m2.f32")
#endif

template <uint32_t format>
struct Core;
template <>
struct Core<kGemmFp64> : CudaFp64Core {};
template <>
struct Core<kGemmFp32> : PlainCore<float> {};
template <>
struct Core<kGemmFp16> : CudaFp16Core {};
template <>
struct Core<kGemmInt8> : CudaInt8Core {};
#define BM_GEMM_FP64 1
#define BM_GEMM_FP32 1
#define BM_GEMM_FP16 1
#define BM_GEMM_INT8 1
#if __CUDA_ARCH__ >= 800
template <>
struct Core<kGemmTf32> : CudaTf32Core {};
template <>
struct Core<kGemmBf16> : CudaBf16Core {};
#define BM_GEMM_TF32 1
#define BM_GEMM_BF16 1
#endif
#if __CUDA_ARCH__ >= 890
template <>
struct Core<kGemmE4m3fn> : CudaE4m3Core {};
template <>
struct Core<kGemmE5m2> : CudaE5m2Core {};
#define BM_GEMM_FP8_OCP 1
#endif

}  // namespace bimetal::kernels
