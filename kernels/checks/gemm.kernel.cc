#include "kernels/checks/gemm_args.h"
#include "kernels/device/portable.h"

// A core multiplies fragments of one format as the architecture does it best: Core<format> with
// LoadA, LoadB, Multiply, and Row and Column of a lane's sums. BM_GEMM_* say which formats it has.
#if defined(__HIP__)
#include "kernels/checks/gemm_core_hip.h"
#elif defined(__CUDACC__)
#include "kernels/checks/gemm_core_cuda.h"
#else
#include "kernels/checks/gemm_core_host.h"
#endif

namespace bimetal::kernels {

BM_INLINE void StoreResult(void* c, uint64_t index, float value, uint64_t mask) {
  static_cast<uint32_t*>(c)[index] =
      AluWord(BitCast<uint32_t>(value)) ^ static_cast<uint32_t>(mask);
}
BM_INLINE void StoreResult(void* c, uint64_t index, int32_t value, uint64_t mask) {
  static_cast<uint32_t*>(c)[index] =
      AluWord(BitCast<uint32_t>(value)) ^ static_cast<uint32_t>(mask);
}
BM_INLINE void StoreResult(void* c, uint64_t index, double value, uint64_t mask) {
  static_cast<uint64_t*>(c)[index] = Alu(BitCast<uint64_t>(value)) ^ mask;
}

// Adds one chunk of k to R x N fragments of the result.
template <class C, uint32_t R, uint32_t N>
BM_INLINE void MultiplyChunk(const Quad* a_chunk, const Quad* b_chunk,
                             typename C::Acc (&acc)[R][N][C::kAccs]) {
  BM_UNROLL for (uint32_t step = 0; step < C::kSteps; ++step) {
    typename C::A a[R];
    typename C::B b[N];
    BM_UNROLL for (uint32_t r = 0; r < R; ++r) {
      a[r] = C::LoadA(a_chunk + r * kGemmFragment * 4, step);
    }
    BM_UNROLL for (uint32_t n = 0; n < N; ++n) {
      b[n] = C::LoadB(b_chunk + n * kGemmFragment * 4, step);
    }
    BM_UNROLL for (uint32_t r = 0; r < R; ++r) {
      BM_UNROLL for (uint32_t n = 0; n < N; ++n) C::Multiply(acc[r][n], a[r], b[n]);
    }
  }
}

// R x N fragments of the result from row and column on, kept in registers.
template <class C, uint32_t R, uint32_t N>
BM_INLINE void MultiplyFragments(const GemmArgs& args, uint32_t row, uint32_t column,
                                 typename C::Acc (&acc)[R][N][C::kAccs]) {
  const Quad* a_panel = static_cast<const Quad*>(args.a) + row * 4;
  const Quad* b_panel = static_cast<const Quad*>(args.b) + column * 4;
  for (uint32_t pass = 0; pass < args.passes; ++pass) {
    for (uint32_t chunk = 0; chunk < args.chunks; ++chunk) {
      const Quad* a_chunk = a_panel + static_cast<uint64_t>(chunk) * args.rows * 4;
      const Quad* b_chunk = b_panel + static_cast<uint64_t>(chunk) * args.columns * 4;
      if constexpr (requires { C::kWarpGroup; }) {
        C::template MultiplyTogether<R, N>(acc, a_chunk, b_chunk);
      } else {
        MultiplyChunk<C, R, N>(a_chunk, b_chunk, acc);
      }
    }
  }
}

// Tiles of kSide x kSide fragments, R x N of them at a time.
template <class C, uint32_t kSide, uint32_t R, uint32_t N>
BM_INLINE void Gemm(const GemmArgs& args) {
  constexpr uint32_t kTile = kSide * kGemmFragment;
  const uint32_t tiles_down = args.rows / kTile;
  const uint32_t tiles = tiles_down * (args.columns / kTile);
  for (uint32_t wave = WaveIndex(); wave < args.tiles_per_block; wave += BlockWaves()) {
    const uint64_t slot = static_cast<uint64_t>(BlockIndex()) * args.tiles_per_block + wave;
    const uint32_t tile = GemmTile(args.salt, slot, tiles);
    for (uint32_t part = 0; part < (kSide / R) * (kSide / N); ++part) {
      const uint32_t down = part / (kSide / N) * R * kGemmFragment;
      const uint32_t across = part % (kSide / N) * N * kGemmFragment;
      typename C::Acc acc[R][N][C::kAccs] = {};
      MultiplyFragments<C, R, N>(args, tile % tiles_down * kTile + down,
                                 tile / tiles_down * kTile + across, acc);
      BM_UNROLL for (uint32_t r = 0; r < R; ++r) {
        BM_UNROLL for (uint32_t n = 0; n < N; ++n) {
          BM_UNROLL for (uint32_t i = 0; i < C::kAccs; ++i) {
            const uint32_t row = down + r * kGemmFragment + C::Row(i);
            const uint32_t column = across + n * kGemmFragment + C::Column(i);
            StoreResult(args.c, slot * kTile * kTile + row * kTile + column, acc[r][n][i],
                        args.mask);
          }
        }
      }
    }
    if (Lane() == 0) args.records[slot] = {Mix(args.token + slot), UnitId()};
  }
}

#define BM_GEMM_KERNELS(name, format)                                                    \
  BM_KERNEL_OF(256) bm_gemm_##name(GemmArgs args) { Gemm<Core<format>, 1, 1, 1>(args); } \
  BM_KERNEL_OF(256) bm_gemm_rate_##name(GemmArgs args) {                                 \
    Gemm<Core<format>, 4, Core<format>::kRows, Core<format>::kColumns>(args);            \
  }

// An architecture without a format has no kernel of it.
#if defined(BM_GEMM_FP64)
BM_GEMM_KERNELS(fp64, kGemmFp64)
#endif
#if defined(BM_GEMM_FP32)
BM_GEMM_KERNELS(fp32, kGemmFp32)
#endif
#if defined(BM_GEMM_TF32)
BM_GEMM_KERNELS(tf32, kGemmTf32)
#endif
#if defined(BM_GEMM_FP16)
BM_GEMM_KERNELS(fp16, kGemmFp16)
#endif
#if defined(BM_GEMM_BF16)
BM_GEMM_KERNELS(bf16, kGemmBf16)
#endif
#if defined(BM_GEMM_FP8_OCP)
BM_GEMM_KERNELS(e4m3fn, kGemmE4m3fn)
BM_GEMM_KERNELS(e5m2, kGemmE5m2)
#endif
#if defined(BM_GEMM_FP8_FNUZ)
BM_GEMM_KERNELS(e4m3fnuz, kGemmE4m3fnuz)
BM_GEMM_KERNELS(e5m2fnuz, kGemmE5m2fnuz)
#endif
#if defined(BM_GEMM_INT8)
BM_GEMM_KERNELS(int8, kGemmInt8)
#endif

}  // namespace bimetal::kernels

#define BM_GEMM_ENTRIES(name) \
  BM_ENTRY(bm_gemm_##name, GemmArgs), BM_ENTRY(bm_gemm_rate_##name, GemmArgs)

BM_MODULE(gemm, BM_GEMM_ENTRIES(fp64), BM_GEMM_ENTRIES(fp32), BM_GEMM_ENTRIES(tf32),
          BM_GEMM_ENTRIES(fp16), BM_GEMM_ENTRIES(bf16), BM_GEMM_ENTRIES(e4m3fn),
          BM_GEMM_ENTRIES(e5m2), BM_GEMM_ENTRIES(e4m3fnuz), BM_GEMM_ENTRIES(e5m2fnuz),
          BM_GEMM_ENTRIES(int8))
