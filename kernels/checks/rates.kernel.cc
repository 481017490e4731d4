#include "kernels/checks/rates_args.h"
#include "kernels/device/portable.h"

namespace bimetal::kernels {

BM_KERNEL bm_rate_fill(RateArgs args) {
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    if (args.a != nullptr) {
      args.a[i] = {RateValue(args.seed, 2 * i), RateValue(args.seed, 2 * i + 1)};
    }
    if (args.b != nullptr) {
      args.b[i] = {RateValue(args.seed + 1, 2 * i), RateValue(args.seed + 1, 2 * i + 1)};
    }
    if (args.c != nullptr) args.c[i] = {-1.0, -1.0};
  }
}

BM_KERNEL bm_rate_copy(RateArgs args) {
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) args.c[i] = args.a[i];
}

BM_KERNEL bm_rate_scale(RateArgs args) {
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    const RatePair a = args.a[i];
    args.c[i] = {RateScalar() * a.x, RateScalar() * a.y};
  }
}

BM_KERNEL bm_rate_add(RateArgs args) {
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    const RatePair a = args.a[i];
    const RatePair b = args.b[i];
    args.c[i] = {a.x + b.x, a.y + b.y};
  }
}

BM_KERNEL bm_rate_triad(RateArgs args) {
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    const RatePair a = args.a[i];
    const RatePair b = args.b[i];
    args.c[i] = {a.x + RateScalar() * b.x, a.y + RateScalar() * b.y};
  }
}

BM_KERNEL bm_rate_dot(RateArgs args) {
  double x = 0;
  double y = 0;
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    const RatePair a = args.a[i];
    const RatePair b = args.b[i];
    x += a.x * b.x;
    y += a.y * b.y;
  }
  const RateRecord record = {Mix(args.token + GlobalThread()), 0, 0, 0, 0, x + y};
  args.records[GlobalThread()] = record;
}

BM_KERNEL bm_rate_verify(RateArgs args) {
  RateRecord record = {Mix(args.token + GlobalThread()), 0, 0, 0, 0, 0};
  const Range range = ThreadRange(args.pairs);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    const RatePair found = args.c[i];
    for (uint64_t half = 0; half < 2; ++half) {
      const uint64_t index = 2 * i + half;
      const double is = half == 0 ? found.x : found.y;
      const double must =
          RateResult(args.kind, RateValue(args.seed, index), RateValue(args.seed + 1, index));
      if (is == must) continue;
      if (record.mismatches++ == 0) {
        record.first = index;
        record.expected = must;
        record.found = is;
      }
    }
  }
  args.records[GlobalThread()] = record;
}

BM_KERNEL bm_rate_empty(RateArgs args) {
  if (GlobalThread() == 0) *args.launches += 1;
}

BM_KERNEL bm_ring_fill(RingArgs args) {
  const Range range = ThreadRange(args.count);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    args.words[i] = RingValue(args.seed, args.rank, i);
  }
}

BM_KERNEL bm_ring_add(RingArgs args) {
  const Range range = ThreadRange(args.count);
  for (uint64_t i = range.begin; i < range.end; i += range.step) args.words[i] += args.other[i];
}

BM_KERNEL bm_ring_verify(RingArgs args) {
  RateRecord record = {Mix(args.token + GlobalThread()), 0, 0, 0, 0, 0};
  const Range range = ThreadRange(args.count);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    uint64_t must = 0;
    for (uint64_t rank = 0; rank < args.ranks; ++rank) must += RingValue(args.seed, rank, i);
    if (args.words[i] == must) continue;
    if (record.mismatches++ == 0) record.first = i;
  }
  args.records[GlobalThread()] = record;
}

BM_KERNEL bm_stress(StressArgs args) {
  const uint64_t lane = GlobalThread() % StressLanes();
  float chain[4];
  for (uint64_t k = 0; k < 4; ++k) chain[k] = StressStart(args.seed, lane, k);
  for (uint64_t i = 0; i < args.iterations; ++i) {
    for (uint64_t k = 0; k < 4; ++k) chain[k] = StressStep(chain[k]);
  }
  RateRecord record = {Mix(args.token + GlobalThread()), 0, 0, 0, 0, 0};
  record.found = static_cast<double>(chain[0]) + static_cast<double>(chain[1]);
  record.sum = static_cast<double>(chain[2]) + static_cast<double>(chain[3]);
  args.records[GlobalThread()] = record;
}

}  // namespace bimetal::kernels

BM_MODULE(rates, BM_ENTRY(bm_rate_fill, RateArgs), BM_ENTRY(bm_rate_copy, RateArgs),
          BM_ENTRY(bm_rate_scale, RateArgs), BM_ENTRY(bm_rate_add, RateArgs),
          BM_ENTRY(bm_rate_triad, RateArgs), BM_ENTRY(bm_rate_dot, RateArgs),
          BM_ENTRY(bm_rate_verify, RateArgs), BM_ENTRY(bm_rate_empty, RateArgs),
          BM_ENTRY(bm_ring_fill, RingArgs), BM_ENTRY(bm_ring_add, RingArgs),
          BM_ENTRY(bm_ring_verify, RingArgs), BM_ENTRY(bm_stress, StressArgs))
