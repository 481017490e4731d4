#pragma once

// AMD's matrix instructions: MFMA of CDNA (64 lanes), WMMA of RDNA 3 (32 lanes). Layouts from the
// ISA documents "CDNA 3" and "RDNA3" (matrix arithmetic instructions). Included by gemm_core.h
// only.

#include "kernels/checks/gemm_core_plain.h"

namespace bimetal::kernels {

typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef _Float16 Half16 __attribute__((ext_vector_type(16)));
typedef short Short4 __attribute__((ext_vector_type(4)));
typedef short Short16 __attribute__((ext_vector_type(16)));
typedef int Int4 __attribute__((ext_vector_type(4)));
typedef int Int8 __attribute__((ext_vector_type(8)));
typedef float Float2 __attribute__((ext_vector_type(2)));
typedef float Float4 __attribute__((ext_vector_type(4)));
typedef float Float8 __attribute__((ext_vector_type(8)));
typedef double Double4 __attribute__((ext_vector_type(4)));

template <uint32_t format>
struct Core;

#if defined(__GFX9__)

// 16 x 16 results: lane l holds of row (A) or column (B) l%16 the part l/16 of a slab of k, and of
// the result the column l%16 and the rows 4(l/16) + i; for fp64 the rows 4i + l/16. Each lane loads
// the 16 bytes at 16(l/16): the order within k is free as long as A and B agree.
template <class T, class Vector>
struct MfmaCore {
  using Acc = T;
  using A = Quad;
  using B = Quad;
  static constexpr uint32_t kAccs = 4;
  static constexpr uint32_t kSteps = 1;
  static constexpr uint32_t kRows = 4;
  static constexpr uint32_t kColumns = 4;

  BM_INLINE Quad LoadA(const Quad* panel, uint32_t) {
    return panel[(Lane() % 16) * 4 + Lane() / 16];
  }
  BM_INLINE Quad LoadB(const Quad* panel, uint32_t step) { return LoadA(panel, step); }
  BM_INLINE uint32_t Row(uint32_t i) {
    return sizeof(T) == 8 ? 4 * i + Lane() / 16 : 4 * (Lane() / 16) + i;
  }
  BM_INLINE uint32_t Column(uint32_t) { return Lane() % 16; }
  BM_INLINE uint64_t Half(const Quad& quad, uint32_t i) {
    return static_cast<uint64_t>(quad.word[2 * i + 1]) << 32 | quad.word[2 * i];
  }
  BM_INLINE Vector Pack(const T (&acc)[kAccs]) { return {acc[0], acc[1], acc[2], acc[3]}; }
  BM_INLINE void Unpack(const Vector& vector, T (&acc)[kAccs]) {
    for (uint32_t i = 0; i < kAccs; ++i) acc[i] = vector[i];
  }
};

// A core whose instruction takes `parts` of the 16 bytes; `call` sees acc (c), and i, a part.
#define BM_MFMA_CORE(format, T, Vector, parts, call)                         \
  template <>                                                                \
  struct Core<format> : MfmaCore<T, Vector> {                                \
    BM_INLINE void Multiply(T (&acc)[kAccs], const Quad& a, const Quad& b) { \
      Vector c = Pack(acc);                                                  \
      for (uint32_t i = 0; i < (parts); ++i) c = call;                       \
      Unpack(c, acc);                                                        \
    }                                                                        \
  };
#define BM_HALVES(T) BitCast<T>(Half(a, i)), BitCast<T>(Half(b, i))
#define BM_WORDS(T) BitCast<T>(a.word[i]), BitCast<T>(b.word[i])

BM_MFMA_CORE(kGemmFp64, double, Double4, 2,
             __builtin_amdgcn_mfma_f64_16x16x4f64(BM_HALVES(double), c, 0, 0, 0))
BM_MFMA_CORE(kGemmFp32, float, Float4, 4,
             __builtin_amdgcn_mfma_f32_16x16x4f32(BM_WORDS(float), c, 0, 0, 0))
BM_MFMA_CORE(kGemmFp16, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x16f16(BM_HALVES(Half4), c, 0, 0, 0))
BM_MFMA_CORE(kGemmBf16, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(BM_HALVES(Short4), c, 0, 0, 0))
#if defined(__gfx942__) || defined(__gfx950__)
BM_MFMA_CORE(kGemmInt8, int32_t, Int4, 2,
             __builtin_amdgcn_mfma_i32_16x16x32_i8(BM_HALVES(int64_t), c, 0, 0, 0))
#else
BM_MFMA_CORE(kGemmInt8, int32_t, Int4, 4,
             __builtin_amdgcn_mfma_i32_16x16x16i8(BM_WORDS(int32_t), c, 0, 0, 0))
#endif
#define BM_GEMM_BF16 1

#if defined(__gfx942__)
BM_MFMA_CORE(kGemmTf32, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x8_xf32(BM_HALVES(Float2), c, 0, 0, 0))
BM_MFMA_CORE(kGemmE4m3fnuz, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(BM_HALVES(int64_t), c, 0, 0, 0))
BM_MFMA_CORE(kGemmE5m2fnuz, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(BM_HALVES(int64_t), c, 0, 0, 0))
#define BM_GEMM_TF32 1
#define BM_GEMM_FP8_FNUZ 1
#elif defined(__gfx950__)
// The same instructions read OCP formats there.
BM_MFMA_CORE(kGemmE4m3fn, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(BM_HALVES(int64_t), c, 0, 0, 0))
BM_MFMA_CORE(kGemmE5m2, float, Float4, 2,
             __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(BM_HALVES(int64_t), c, 0, 0, 0))
#define BM_GEMM_FP8_OCP 1
#endif

#else  // RDNA 3

// Lane l holds all of k of row (A) or column (B) l%16, the upper 16 lanes the same again, and of
// the result the column l%16 and the rows 2i + l/16.
template <class T, class Vector, uint32_t quads>
struct WmmaCore {
  using Acc = T;
  struct Operand {
    Quad quad[quads];
  };
  using A = Operand;
  using B = Operand;
  static constexpr uint32_t kAccs = 8;
  static constexpr uint32_t kSteps = 4 / quads;
  static constexpr uint32_t kRows = 4;
  static constexpr uint32_t kColumns = 2;

  BM_INLINE Operand LoadA(const Quad* panel, uint32_t step) {
    Operand operand;
    for (uint32_t i = 0; i < quads; ++i) {
      operand.quad[i] = panel[(Lane() % 16) * 4 + step * quads + i];
    }
    return operand;
  }
  BM_INLINE Operand LoadB(const Quad* panel, uint32_t step) { return LoadA(panel, step); }
  BM_INLINE uint32_t Row(uint32_t i) { return 2 * i + Lane() / 16; }
  BM_INLINE uint32_t Column(uint32_t) { return Lane() % 16; }
  BM_INLINE Vector Pack(const T (&acc)[kAccs]) {
    return {acc[0], acc[1], acc[2], acc[3], acc[4], acc[5], acc[6], acc[7]};
  }
  BM_INLINE void Unpack(const Vector& vector, T (&acc)[kAccs]) {
    for (uint32_t i = 0; i < kAccs; ++i) acc[i] = vector[i];
  }
};

#define BM_WMMA_CORE(format, T, Vector, quads, call)                               \
  template <>                                                                      \
  struct Core<format> : WmmaCore<T, Vector, quads> {                               \
    BM_INLINE void Multiply(T (&acc)[kAccs], const Operand& a, const Operand& b) { \
      const Vector c = Pack(acc);                                                  \
      Unpack(call, acc);                                                           \
    }                                                                              \
  };

BM_WMMA_CORE(kGemmFp16, float, Float8, 2,
             __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(BitCast<Half16>(a), BitCast<Half16>(b), c))
BM_WMMA_CORE(kGemmBf16, float, Float8, 2,
             __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(BitCast<Short16>(a), BitCast<Short16>(b),
                                                         c))
BM_WMMA_CORE(kGemmInt8, int32_t, Int8, 1,
             __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, BitCast<Int4>(a), true,
                                                        BitCast<Int4>(b), c, false))
template <>
struct Core<kGemmFp64> : PlainCore<double> {};
template <>
struct Core<kGemmFp32> : PlainCore<float> {};
#define BM_GEMM_BF16 1

#endif

#define BM_GEMM_FP64 1
#define BM_GEMM_FP32 1
#define BM_GEMM_FP16 1
#define BM_GEMM_INT8 1

}  // namespace bimetal::kernels
