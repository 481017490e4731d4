#include "kernels/checks/memory_pattern.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/checks/memory_pattern_args.h"
#include "kernels/checks/modules.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kMinBytes = 64ull << 10;

struct Step {
  const char* name;
  bool fill;  // else the words hold what the step before left
  std::uint32_t pattern;
  bool inverted;  // what the words are expected to hold
  bool rewrite;   // leave the inverse
};

// The moving inversions walk three times: p, then ~p, then p again.
constexpr Step kSteps[] = {
    {"address", true, kPatternAddress, false, false},
    {"walking one", true, kPatternWalkingOne, false, true},
    {"walking zero", false, kPatternWalkingOne, true, false},
    {"moving inversions, first walk", true, kPatternCheckered, false, true},
    {"moving inversions, second walk", false, kPatternCheckered, true, true},
    {"moving inversions, third walk", false, kPatternCheckered, false, false},
    {"random", true, kPatternRandom, false, true},
    {"random inverted", false, kPatternRandom, true, false},
};

struct Tally {
  std::uint64_t mismatches = 0;
  std::uint64_t bits = 0;
  std::optional<MemoryRecord> first;  // of the first step that saw one, lowest address
  const char* first_step = nullptr;
  std::optional<std::uint64_t> silent_thread;
  const char* silent_step = nullptr;
};

// One run of the check on one device.
class MemoryTest {
 public:
  MemoryTest(Device& device, DeviceBuffer words, DeviceBuffer records, LaunchShape shape,
             Deadline deadline)
      : device_(device),
        words_(std::move(words)),
        records_(std::move(records)),
        shape_(shape),
        deadline_(deadline),
        host_records_(shape.total()) {}

  Done RunRound(std::uint64_t seed) {
    for (const Step& step : kSteps) {
      KERNELS_TRY(RunStep(step, seed));
      if (tally_.silent_thread) break;  // nothing that follows would mean anything
    }
    return Success();
  }
  const Tally& tally() const { return tally_; }

 private:
  Done RunStep(const Step& step, std::uint64_t seed) {
    MemoryArgs args = {};
    args.words = words_.address<std::uint64_t>();
    args.count = words_.get().bytes / 8;
    args.seed = seed;
    args.pattern = step.pattern;
    args.inverted = step.inverted ? 1 : 0;
    args.records = records_.address<MemoryRecord>();
    args.token = Mix(seed ^ Mix(++launches_));
    args.rewrite = step.rewrite ? 1 : 0;
    if (step.fill) {
      // Apart from the verify, so that what is read back has left the caches of the writer.
      KERNELS_TRY(LaunchWith(device_, MemoryPatternModule(), "bm_memory_fill", shape_, args));
      KERNELS_TRY(device_.Synchronize(deadline_));
    }
    KERNELS_TRY(LaunchWith(device_, MemoryPatternModule(), "bm_memory_verify", shape_, args));
    KERNELS_TRY(device_.Synchronize(deadline_));
    KERNELS_TRY(device_.Download(records_.get(), std::as_writable_bytes(std::span(host_records_))));
    Count(step, args.token);
    return Success();
  }

  void Count(const Step& step, std::uint64_t token) {
    std::optional<MemoryRecord> lowest;
    for (std::uint64_t thread = 0; thread < host_records_.size(); ++thread) {
      const MemoryRecord& record = host_records_[thread];
      if (record.token != Mix(token + thread)) {
        tally_.silent_thread = thread;
        tally_.silent_step = step.name;
        return;
      }
      if (record.mismatches == 0) continue;
      tally_.mismatches += record.mismatches;
      tally_.bits |= record.bits;
      if (!lowest || record.first < lowest->first) lowest = record;
    }
    if (lowest && !tally_.first) {
      tally_.first = lowest;
      tally_.first_step = step.name;
    }
  }

  Device& device_;
  DeviceBuffer words_;
  DeviceBuffer records_;
  LaunchShape shape_;
  Deadline deadline_;
  std::vector<MemoryRecord> host_records_;
  std::uint64_t launches_ = 0;
  Tally tally_;
};

Outcome<std::uint64_t> BytesToTest(Device& device, const CheckRequest& request) {
  KERNELS_TRY_ASSIGN(const MemoryInfo memory, device.QueryMemory());
  std::uint64_t bytes = request.memory_bytes;
  if (bytes == 0) bytes = device.info().default_test_bytes;
  // At least that share: rounded up to whole pages.
  if (bytes == 0) bytes = (memory.free_bytes / 100 * request.memory_percent + 4095) / 4096 * 4096;
  bytes = bytes / 4096 * 4096;
  if (bytes < kMinBytes) {
    return DeviceError{DeviceErrorCode::kOutOfMemory,
                       "device " + device.info().id + ": " + std::to_string(bytes) +
                           " bytes are too few to test (" + std::to_string(memory.free_bytes) +
                           " bytes free)"};
  }
  return bytes;
}

CheckResult Judge(const Tally& tally, std::uint64_t bytes, const std::string& beginning) {
  CheckResult result;
  result.value = std::to_string(bytes);
  result.unit = "bytes";
  if (tally.silent_thread) {
    result.verdict = VerdictKind::kFail;
    result.evidence = "the device reported success, but thread " +
                      std::to_string(*tally.silent_thread) + " left no result in step '" +
                      tally.silent_step + "'";
  } else if (tally.first) {
    result.verdict = VerdictKind::kFail;
    result.evidence = "first mismatch at offset " + Hex(tally.first->first * 8) + ", expected " +
                      Hex(tally.first->expected) + ", found " + Hex(tally.first->found) +
                      ", step '" + tally.first_step + "'; differing bits " + Hex(tally.bits) +
                      "; " + std::to_string(tally.mismatches) + " mismatches over all steps" +
                      beginning;
  } else {
    result.verdict = VerdictKind::kPass;
    result.evidence = std::to_string(std::size(kSteps)) + " pattern steps, 0 mismatches";
  }
  return result;
}

Outcome<CheckResult> Run(Device& device, const CheckRequest& request) {
  KERNELS_TRY_ASSIGN(const std::uint64_t bytes, BytesToTest(device, request));
  const LaunchShape shape = {
      std::max(1u, device.info().compute_units * device.info().blocks_per_unit),
      device.info().threads_per_block};
  KERNELS_TRY_ASSIGN(DeviceBuffer words, DeviceBuffer::Make(device, bytes));
  if (const auto reason = device.UntestedReason(words.get())) {
    return CheckResult{VerdictKind::kInconclusive, std::to_string(bytes), "bytes", "", "", *reason};
  }
  KERNELS_TRY_ASSIGN(DeviceBuffer records,
                     DeviceBuffer::Make(device, shape.total() * sizeof(MemoryRecord)));
  // On a real device the place in its address space is what other tools of the vendor speak of.
  const std::string beginning =
      device.info().simulated ? "" : "; offset 0 is address " + Hex(words.get().address);
  MemoryTest test(device, std::move(words), std::move(records), shape, request.deadline);
  for (std::uint32_t round = 0; round < request.rounds; ++round) {
    KERNELS_TRY(test.RunRound(request.seed + round));
    if (test.tally().silent_thread) break;
  }
  return Judge(test.tally(), bytes, beginning);
}

}  // namespace

CheckResult RunMemoryPattern(Device& device, const CheckRequest& request) {
  return RunBody([&] { return Run(device, request); });
}

}  // namespace bimetal::kernels
