#pragma once

// The host's matrix core: one thread plays the wave, formats are converted in software. Included by
// gemm_core.h only.

#include <array>
#include <cstring>

#include "kernels/checks/gemm_formats.h"

namespace bimetal::kernels {

// Element `i` of a chunk's row as the type that sums are kept in.
template <uint32_t format>
inline auto HostElement(const Quad* row, uint32_t i) {
  if constexpr (format == kGemmFp64) {
    double value;
    std::memcpy(&value, reinterpret_cast<const char*>(row) + i * 8, 8);
    return value;
  } else if constexpr (format == kGemmFp32 || format == kGemmTf32) {
    return BitCast<float>(row[i / 4].word[i % 4]);
  } else if constexpr (format == kGemmBf16) {
    const uint32_t half = row[i / 8].word[i / 2 % 4] >> (i % 2 * 16) & 0xffffu;
    return BitCast<float>(half << 16);
  } else if constexpr (format == kGemmFp16) {
    // The exponents differ by 112; a multiplication mends them, subnormal numbers included.
    const uint32_t half = row[i / 8].word[i / 2 % 4] >> (i % 2 * 16) & 0xffffu;
    const float value = BitCast<float>((half & 0x7fffu) << 13) * 0x1p112f;
    return (half & 0x8000u) != 0 ? -value : value;
  } else {
    const uint32_t byte = row[i / 16].word[i / 4 % 4] >> (i % 4 * 8) & 0xffu;
    if constexpr (format == kGemmInt8) {
      return static_cast<int32_t>(static_cast<int8_t>(byte));
    } else {
      static const auto kValues = [] {
        constexpr SmallFormat kFormat = format == kGemmE4m3fn     ? kFormatE4m3fn
                                        : format == kGemmE5m2     ? kFormatE5m2
                                        : format == kGemmE4m3fnuz ? kFormatE4m3fnuz
                                                                  : kFormatE5m2fnuz;
        std::array<float, 256> values{};
        for (uint32_t code = 0; code < 256; ++code) {
          values[code] = static_cast<float>(DecodeSmall(kFormat, code));
        }
        return values;
      }();
      return kValues[byte];
    }
  }
}

constexpr uint32_t GemmElementBytes(uint32_t format) {
  if (format == kGemmFp64) return 8;
  if (format == kGemmFp32 || format == kGemmTf32) return 4;
  return format == kGemmFp16 || format == kGemmBf16 ? 2 : 1;
}

template <uint32_t format>
struct Core {
  using Acc = decltype(HostElement<format>(nullptr, 0));
  static constexpr uint32_t kAccs = kGemmFragment * kGemmFragment;
  static constexpr uint32_t kSteps = 1;
  static constexpr uint32_t kRows = 4;
  static constexpr uint32_t kColumns = 4;
  static constexpr uint32_t kElements = kGemmChunkBytes / GemmElementBytes(format);

  struct A {
    Acc value[kGemmFragment][kElements];
  };
  struct B {
    Acc value[kElements][kGemmFragment];
  };

  static A LoadA(const Quad* panel, uint32_t) {
    A a;
    for (uint32_t row = 0; row < kGemmFragment; ++row) {
      for (uint32_t k = 0; k < kElements; ++k) {
        a.value[row][k] = HostElement<format>(panel + row * 4, k);
      }
    }
    return a;
  }
  static B LoadB(const Quad* panel, uint32_t) {
    B b;
    for (uint32_t column = 0; column < kGemmFragment; ++column) {
      for (uint32_t k = 0; k < kElements; ++k) {
        b.value[k][column] = HostElement<format>(panel + column * 4, k);
      }
    }
    return b;
  }
  // In order of k, each product and each sum rounded.
  static void Multiply(Acc (&acc)[kAccs], const A& a, const B& b) {
    for (uint32_t row = 0; row < kGemmFragment; ++row) {
      Acc* sums = acc + row * kGemmFragment;
      for (uint32_t k = 0; k < kElements; ++k) {
        const Acc left = a.value[row][k];
        for (uint32_t column = 0; column < kGemmFragment; ++column) {
          sums[column] += left * b.value[k][column];
        }
      }
    }
  }
  static uint32_t Row(uint32_t i) { return i / kGemmFragment; }
  static uint32_t Column(uint32_t i) { return i % kGemmFragment; }
};

#define BM_GEMM_FP64 1
#define BM_GEMM_FP32 1
#define BM_GEMM_TF32 1
#define BM_GEMM_FP16 1
#define BM_GEMM_BF16 1
#define BM_GEMM_FP8_OCP 1
#define BM_GEMM_FP8_FNUZ 1
#define BM_GEMM_INT8 1

}  // namespace bimetal::kernels
