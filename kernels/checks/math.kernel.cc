#include "kernels/checks/math_args.h"
#include "kernels/device/portable.h"

#if defined(BM_HOST_CODE)
#include <cmath>
#endif

namespace bimetal::kernels {

// The special-function units themselves, without a library's corrections around them.
#if defined(__HIP__)
BM_INLINE float Exp2(float x) { return __builtin_amdgcn_exp2f(x); }
BM_INLINE float Log2(float x) { return __builtin_amdgcn_logf(x); }
BM_INLINE float SineOfTurns(float x) { return __builtin_amdgcn_sinf(x); }
BM_INLINE float CosineOfTurns(float x) { return __builtin_amdgcn_cosf(x); }
BM_INLINE float ReciprocalRoot(float x) { return __builtin_amdgcn_rsqf(x); }
BM_INLINE float Reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
BM_INLINE float Root(float x) { return __builtin_amdgcn_sqrtf(x); }
BM_INLINE double Root64(double x) { return __builtin_sqrt(x); }
#elif defined(__CUDACC__)
#define BM_MATH_FUNCTION(Name, instruction)                  \
  BM_INLINE float Name(float x) {                            \
    float y;                                                 \
    asm volatile(instruction " %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                                \
  }
BM_MATH_FUNCTION(Exp2, "ex2.approx.f32")
BM_MATH_FUNCTION(Log2, "lg2.approx.f32")
BM_MATH_FUNCTION(Sine, "sin.approx.f32")
BM_MATH_FUNCTION(Cosine, "cos.approx.f32")
BM_MATH_FUNCTION(ReciprocalRoot, "rsqrt.approx.f32")
BM_MATH_FUNCTION(Reciprocal, "rcp.approx.f32")
BM_MATH_FUNCTION(Root, "sqrt.approx.f32")
BM_INLINE float SineOfTurns(float x) { return Sine(6.283185307f * x); }
BM_INLINE float CosineOfTurns(float x) { return Cosine(6.283185307f * x); }
BM_INLINE double Root64(double x) { return sqrt(x); }
#else
BM_INLINE float Exp2(float x) { return std::exp2(x); }
BM_INLINE float Log2(float x) { return std::log2(x); }
BM_INLINE float SineOfTurns(float x) { return std::sin(6.283185307f * x); }
BM_INLINE float CosineOfTurns(float x) { return std::cos(6.283185307f * x); }
BM_INLINE float ReciprocalRoot(float x) { return 1.0f / std::sqrt(x); }
BM_INLINE float Reciprocal(float x) { return 1.0f / x; }
BM_INLINE float Root(float x) { return std::sqrt(x); }
BM_INLINE double Root64(double x) { return std::sqrt(x); }
#endif

BM_INLINE uint32_t Sealed(float value, uint64_t mask) {
  return AluWord(BitCast<uint32_t>(value)) ^ static_cast<uint32_t>(mask);
}
BM_INLINE uint64_t Sealed(double value, uint64_t mask) {
  return Alu(BitCast<uint64_t>(value)) ^ mask;
}

BM_KERNEL bm_math(MathArgs args) {
  const uint32_t segment = (args.first_segment + BlockIndex()) % args.segments;
  for (uint32_t i = ThreadIndex(); i < kMathPoints; i += BlockThreads()) {
    const MathInput in = args.inputs[segment * kMathPoints + i];
    MathOutput out;
    out.exp2 = Sealed(Exp2(in.exponent), args.mask);
    out.log2 = Sealed(Log2(in.positive), args.mask);
    out.sine = Sealed(SineOfTurns(in.turns), args.mask);
    out.cosine = Sealed(CosineOfTurns(in.turns), args.mask);
    out.rsqrt = Sealed(ReciprocalRoot(in.positive), args.mask);
    out.reciprocal = Sealed(Reciprocal(in.positive), args.mask);
    out.root = Sealed(Root(in.positive), args.mask);
    out.quotient = Sealed(in.positive / in.divisor, args.mask);
    out.quotient64 = Sealed(in.numerator / in.denominator, args.mask);
    out.root64 = Sealed(Root64(in.denominator), args.mask);
    args.outputs[static_cast<uint64_t>(BlockIndex()) * kMathPoints + i] = out;
  }
  if (ThreadIndex() == 0) {
    args.records[BlockIndex()] = {Mix(args.token + BlockIndex()), UnitId()};
  }
}

}  // namespace bimetal::kernels

BM_MODULE(math, BM_ENTRY(bm_math, MathArgs))
