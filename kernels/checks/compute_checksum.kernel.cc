#include "kernels/checks/compute_checksum_args.h"
#include "kernels/device/portable.h"

namespace bimetal::kernels {

BM_KERNEL bm_compute_checksum(ChecksumArgs args) {
  const uint64_t item = GlobalThread();
  uint64_t value = ChecksumStart(args.seed, item);
  for (uint64_t i = 0; i < args.iterations; ++i) value = Alu(ChecksumStep(value, i));
  ChecksumRecord record;
  record.token = Mix(args.token + item);
  record.value = value;
  record.unit = UnitId();
  args.records[item] = record;
}

}  // namespace bimetal::kernels

BM_MODULE(compute_checksum, BM_ENTRY(bm_compute_checksum, ChecksumArgs))
