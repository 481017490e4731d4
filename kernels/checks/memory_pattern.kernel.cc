#include "kernels/checks/memory_pattern_args.h"
#include "kernels/device/portable.h"

namespace bimetal::kernels {

BM_KERNEL bm_memory_fill(MemoryArgs args) {
  const uint64_t flip = args.inverted != 0 ? ~0ull : 0ull;
  const Range range = ThreadRange(args.count);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    args.words[i] = PatternValue(args.pattern, i, args.seed) ^ flip;
  }
}

BM_KERNEL bm_memory_verify(MemoryArgs args) {
  const uint64_t flip = args.inverted != 0 ? ~0ull : 0ull;
  MemoryRecord record = {Mix(args.token + GlobalThread()), 0, 0, 0, 0, 0};
  const Range range = ThreadRange(args.count);
  for (uint64_t i = range.begin; i < range.end; i += range.step) {
    const uint64_t expected = PatternValue(args.pattern, i, args.seed) ^ flip;
    const uint64_t found = args.words[i];
    if (found != expected) {
      if (record.mismatches == 0) {
        record.first = i;
        record.expected = expected;
        record.found = found;
      }
      record.mismatches += 1;
      record.bits |= found ^ expected;
    }
    if (args.rewrite != 0) args.words[i] = ~expected;
  }
  args.records[GlobalThread()] = record;
}

}  // namespace bimetal::kernels

BM_MODULE(memory_pattern, BM_ENTRY(bm_memory_fill, MemoryArgs),
          BM_ENTRY(bm_memory_verify, MemoryArgs))
