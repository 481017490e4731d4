#pragma once

// Multiply-add without matrix instructions, for waves of 32 lanes. Included by gemm_core.h only.
//
// Lane l holds of each 16 x 16 fragment the rows l/4 and l/4 + 8 and the columns 2(l%4), +1, +8,
// +9: the layout of NVIDIA's matrix instructions, so that both kinds share Row() and Column().

namespace bimetal::kernels {

BM_INLINE uint32_t QuarterRow(uint32_t i) { return Lane() / 4 + ((i & 2) != 0 ? 8 : 0); }
BM_INLINE uint32_t QuarterColumn(uint32_t i) {
  return 2 * (Lane() % 4) + (i & 1) + ((i & 4) != 0 ? 8 : 0);
}

template <class T>
struct PlainCore {
  using Acc = T;
  static constexpr uint32_t kAccs = 8;
  static constexpr uint32_t kSteps = 4;  // a chunk, 16 bytes of k each
  // Fragments of the rate kernel that fit the registers.
  static constexpr uint32_t kRows = sizeof(T) == 4 ? 4 : 2;
  static constexpr uint32_t kColumns = 2;
  static constexpr uint32_t kElements = 16 / sizeof(T);

  struct A {
    T row[2][kElements];
  };
  struct B {
    T column[4][kElements];
  };

  BM_INLINE void LoadOne(const Quad* at, T* to) {
    const Quad quad = *at;
    if constexpr (sizeof(T) == 4) {
      for (uint32_t i = 0; i < 4; ++i) to[i] = BitCast<T>(quad.word[i]);
    } else {
      for (uint32_t i = 0; i < 2; ++i) {
        to[i] = BitCast<T>(static_cast<uint64_t>(quad.word[2 * i + 1]) << 32 | quad.word[2 * i]);
      }
    }
  }
  BM_INLINE A LoadA(const Quad* panel, uint32_t step) {
    A a;
    for (uint32_t i = 0; i < 2; ++i) LoadOne(panel + QuarterRow(2 * i) * 4 + step, a.row[i]);
    return a;
  }
  BM_INLINE B LoadB(const Quad* panel, uint32_t step) {
    B b;
    LoadOne(panel + QuarterColumn(0) * 4 + step, b.column[0]);
    LoadOne(panel + QuarterColumn(1) * 4 + step, b.column[1]);
    LoadOne(panel + QuarterColumn(4) * 4 + step, b.column[2]);
    LoadOne(panel + QuarterColumn(5) * 4 + step, b.column[3]);
    return b;
  }
  BM_INLINE void Multiply(Acc (&acc)[kAccs], const A& a, const B& b) {
    for (uint32_t k = 0; k < kElements; ++k) {
      for (uint32_t i = 0; i < kAccs; ++i) {
        const T product_row = a.row[(i >> 1) & 1][k];
        acc[i] = Fma(product_row, b.column[(i & 1) | ((i >> 1) & 2)][k], acc[i]);
      }
    }
  }
  BM_INLINE float Fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
  BM_INLINE double Fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
  BM_INLINE uint32_t Row(uint32_t i) { return QuarterRow(i); }
  BM_INLINE uint32_t Column(uint32_t i) { return QuarterColumn(i); }
};

}  // namespace bimetal::kernels
