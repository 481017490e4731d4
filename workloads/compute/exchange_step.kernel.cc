#include "kernels/device/portable.h"
#include "workloads/compute/exchange_step_args.h"

namespace bimetal::kernels {

BM_KERNEL bm_exchange_step(ExchangeStepArgs args) {
  const Range range = ThreadRange(args.count);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    args.values[i] = ExchangeValue(args.rank, args.round, i);
  }
}

}  // namespace bimetal::kernels

BM_MODULE(exchange_step, BM_ENTRY(bm_exchange_step, ExchangeStepArgs))
