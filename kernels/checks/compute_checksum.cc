#include "kernels/checks/compute_checksum.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/checks/compute_checksum_args.h"
#include "kernels/checks/modules.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kIterations = 512;
constexpr std::uint32_t kRepeats = 3;       // a round; every value must repeat bit for bit
constexpr std::uint32_t kMaxLaunches = 12;  // a round; more only while units are missing
constexpr std::size_t kNamedUnits = 8;      // of the wrong ones, in the evidence

// What the host computes for every thread. Devices of one shape share it within a run.
std::shared_ptr<const std::vector<std::uint64_t>> Reference(std::uint64_t seed,
                                                            std::uint64_t threads) {
  static std::mutex mutex;
  static std::map<std::tuple<std::uint64_t, std::uint64_t>,
                  std::weak_ptr<const std::vector<std::uint64_t>>>
      known;
  const std::lock_guard lock(mutex);
  auto& entry = known[{seed, threads}];
  if (auto shared = entry.lock()) return shared;
  auto values = std::make_shared<std::vector<std::uint64_t>>(threads);
  for (std::uint64_t item = 0; item < threads; ++item) {
    std::uint64_t value = ChecksumStart(seed, item);
    for (std::uint64_t i = 0; i < kIterations; ++i) value = ChecksumStep(value, i);
    (*values)[item] = value;
  }
  entry = values;
  return values;
}

struct WrongUnit {
  std::uint64_t wrong = 0;
  std::uint64_t item = 0;  // of the first wrong value
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
};

struct Tally {
  std::map<std::uint64_t, std::uint64_t> units;  // id -> values computed
  std::map<std::uint64_t, WrongUnit> wrong;      // id -> what was wrong
  std::uint64_t launches = 0;
  std::uint64_t checksum = 0;  // over all right values in order
  std::optional<std::uint64_t> silent_thread;
};

void Count(const std::vector<ChecksumRecord>& records, const std::vector<std::uint64_t>& reference,
           std::uint64_t token, Tally* tally) {
  for (std::uint64_t item = 0; item < records.size(); ++item) {
    const ChecksumRecord& record = records[item];
    if (record.token != Mix(token + item)) {
      tally->silent_thread = item;
      return;
    }
    ++tally->units[record.unit];
    if (record.value == reference[item]) continue;
    WrongUnit& wrong = tally->wrong[record.unit];
    if (wrong.wrong++ == 0) {
      wrong.item = item;
      wrong.expected = reference[item];
      wrong.found = record.value;
    }
  }
}

Done RunRound(Device& device, const CheckRequest& request, std::uint64_t seed,
              const DeviceBuffer& buffer, LaunchShape shape, Tally* tally) {
  const auto reference = Reference(seed, shape.total());
  for (const std::uint64_t value : *reference) tally->checksum = Mix(tally->checksum ^ value);
  std::vector<ChecksumRecord> records(shape.total());
  for (std::uint32_t launch = 0; launch < kMaxLaunches; ++launch) {
    if (launch >= kRepeats && tally->units.size() >= device.info().compute_units) break;
    ChecksumArgs args = {};
    args.records = buffer.address<ChecksumRecord>();
    args.seed = seed;
    args.token = Mix(seed ^ Mix(++tally->launches));
    args.iterations = kIterations;
    KERNELS_TRY(LaunchWith(device, ComputeChecksumModule(), "bm_compute_checksum", shape, args));
    KERNELS_TRY(device.Synchronize(request.deadline));
    KERNELS_TRY(device.Download(buffer.get(), std::as_writable_bytes(std::span(records))));
    Count(records, *reference, args.token, tally);
    if (tally->silent_thread) break;
  }
  return Success();
}

std::string DescribeWrong(const Tally& tally) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [unit, wrong] : tally.wrong) {
    if (named++ == kNamedUnits) break;
    text += (text.empty() ? "" : "; ") + std::string("unit ") + std::to_string(unit) + ": " +
            std::to_string(wrong.wrong) + " of " + std::to_string(tally.units.at(unit)) +
            " results wrong, first item " + std::to_string(wrong.item) + ", expected " +
            Hex(wrong.expected) + ", found " + Hex(wrong.found);
  }
  if (named > kNamedUnits) {
    text += "; " + std::to_string(tally.wrong.size() - kNamedUnits) + " more units wrong";
  }
  return text;
}

CheckResult Judge(const Tally& tally, std::uint32_t expected_units) {
  CheckResult result;
  result.value = std::to_string(tally.units.size());
  result.unit = "computeUnits";
  const std::string coverage = std::to_string(tally.units.size()) + " of " +
                               std::to_string(expected_units) + " compute units ran";
  if (tally.silent_thread) {
    result.verdict = VerdictKind::kFail;
    result.evidence = "the device reported success, but thread " +
                      std::to_string(*tally.silent_thread) + " left no result";
  } else if (!tally.wrong.empty()) {
    result.verdict = VerdictKind::kFail;
    result.evidence = DescribeWrong(tally) + "; " + coverage;
  } else if (tally.units.size() < expected_units) {
    result.verdict = VerdictKind::kInconclusive;
    result.evidence = coverage + " in " + std::to_string(tally.launches) + " launches";
  } else {
    result.verdict = VerdictKind::kPass;
    result.evidence = coverage + ", checksum " + Hex(tally.checksum) + ", identical in " +
                      std::to_string(tally.launches) + " launches";
  }
  return result;
}

Outcome<CheckResult> Run(Device& device, const CheckRequest& request) {
  const DeviceInfo& info = device.info();
  const LaunchShape shape = {std::max(1u, info.compute_units * info.blocks_per_unit),
                             info.threads_per_block};
  KERNELS_TRY_ASSIGN(const DeviceBuffer buffer,
                     DeviceBuffer::Make(device, shape.total() * sizeof(ChecksumRecord)));
  Tally tally;
  for (std::uint32_t round = 0; round < request.rounds; ++round) {
    KERNELS_TRY(RunRound(device, request, request.seed + round, buffer, shape, &tally));
    if (tally.silent_thread) break;
  }
  return Judge(tally, std::max(1u, info.compute_units));
}

}  // namespace

CheckResult RunComputeChecksum(Device& device, const CheckRequest& request) {
  return RunBody([&] { return Run(device, request); });
}

}  // namespace bimetal::kernels
