#include "kernels/checks/atomics.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/checks/atomics_args.h"
#include "kernels/checks/modules.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint32_t kRepeats = 3;
constexpr std::uint32_t kMaxLaunches = 12;
constexpr std::uint32_t kBlocksPerUnit = 4;
constexpr std::uint32_t kThreads = 64;  // a block: enough to contend, not to stall
constexpr std::size_t kNamedUnits = 8;

AtomicCell Empty() {
  AtomicCell cell = {};
  cell.min64 = ~0ull;
  cell.min32 = ~0u;
  return cell;
}

// What one thread does to a cell; exchanges are kept as the xor of all that went in.
void Meet(std::uint64_t value, bool swaps, AtomicCell* cell) {
  const auto low = static_cast<std::uint32_t>(value);
  cell->add64 += value;
  cell->min64 = std::min(cell->min64, value);
  cell->max64 = std::max(cell->max64, value);
  cell->exchanged64 ^= value;
  cell->add32 += low;
  cell->min32 = std::min(cell->min32, low);
  cell->max32 = std::max(cell->max32, low);
  cell->exchanged32 ^= low;
  if (!swaps) return;
  cell->cas64 += value;
  cell->cas32 += low;
}

// The cells as they must be: the device's, then each block's.
std::vector<AtomicCell> Expected(std::uint64_t seed, LaunchShape shape) {
  std::vector<AtomicCell> cells(shape.blocks + 1, Empty());
  for (std::uint32_t block = 0; block < shape.blocks; ++block) {
    for (std::uint32_t thread = 0; thread < shape.threads; ++thread) {
      const std::uint64_t value = AtomicValue(seed, std::uint64_t{block} * shape.threads + thread);
      Meet(value, thread == 0, &cells[0]);
      Meet(value, true, &cells[block + 1]);
    }
  }
  return cells;
}

struct Difference {
  const char* operation;
  std::uint64_t expected;
  std::uint64_t found;
};

std::optional<Difference> Compare(const AtomicCell& expected, const AtomicCell& found) {
  const auto differences = std::to_array<Difference>({
      {"add64", expected.add64, found.add64},
      {"add32", expected.add32, found.add32},
      {"min64", expected.min64, found.min64},
      {"min32", expected.min32, found.min32},
      {"max64", expected.max64, found.max64},
      {"max32", expected.max32, found.max32},
      {"cas64", expected.cas64, found.cas64},
      {"cas32", expected.cas32, found.cas32},
      {"exch64", expected.exchanged64, found.exchanged64 ^ found.exchange64},
      {"exch32", expected.exchanged32, found.exchanged32 ^ found.exchange32},
  });
  for (const Difference& difference : differences) {
    if (difference.expected != difference.found) return difference;
  }
  return std::nullopt;
}

std::string Text(const Difference& difference) {
  return std::string(difference.operation) + ", expected " + Hex(difference.expected) + ", found " +
         Hex(difference.found);
}

struct Tally {
  std::map<std::uint64_t, std::uint64_t> units;
  std::map<std::uint64_t, std::string> wrong;  // unit -> its first wrong cell
  std::string device_wrong;
  std::optional<std::uint64_t> silent;
  std::uint64_t launches = 0;
};

void Count(const std::vector<AtomicCell>& expected, const std::vector<AtomicCell>& cells,
           const std::vector<AtomicRecord>& records, std::uint64_t token, Tally* tally) {
  for (std::size_t block = 0; block < records.size(); ++block) {
    if (records[block].token != Mix(token + block)) {
      tally->silent = block;
      return;
    }
    ++tally->units[records[block].unit];
    const auto difference = Compare(expected[block + 1], cells[block + 1]);
    if (difference) {
      tally->wrong.emplace(records[block].unit,
                           "block " + std::to_string(block) + ", " + Text(*difference));
    }
  }
  const auto difference = Compare(expected[0], cells[0]);
  if (difference && tally->device_wrong.empty()) tally->device_wrong = Text(*difference);
}

Done RunRound(Device& device, const CheckRequest& request, std::uint64_t seed, Tally* tally) {
  const DeviceInfo& info = device.info();
  const std::uint32_t units = std::max(1u, info.compute_units);
  const LaunchShape shape =
      info.simulated ? LaunchShape{units * 2, 1} : LaunchShape{units * kBlocksPerUnit, kThreads};
  const std::vector<AtomicCell> expected = Expected(seed, shape);
  const std::vector<AtomicCell> empty(expected.size(), Empty());
  std::vector<AtomicCell> cells(expected.size());
  std::vector<AtomicRecord> records(shape.blocks);
  KERNELS_TRY_ASSIGN(const DeviceBuffer device_cells,
                     DeviceBuffer::Make(device, cells.size() * sizeof(AtomicCell)));
  KERNELS_TRY_ASSIGN(const DeviceBuffer device_records,
                     DeviceBuffer::Make(device, records.size() * sizeof(AtomicRecord)));
  for (std::uint32_t launch = 0; launch < kMaxLaunches; ++launch) {
    if (launch >= kRepeats && tally->units.size() >= units) break;
    static std::atomic<std::uint64_t> serial = 0;
    AtomicArgs args = {};
    args.cells = device_cells.address<AtomicCell>();
    args.records = device_records.address<AtomicRecord>();
    args.seed = seed;
    args.token = Mix(++serial);
    KERNELS_TRY(device.Upload(device_cells.get(), std::as_bytes(std::span(empty))));
    KERNELS_TRY(LaunchWith(device, AtomicsModule(), "bm_atomics", shape, args));
    KERNELS_TRY(device.Synchronize(request.deadline));
    KERNELS_TRY(device.Download(device_records.get(), std::as_writable_bytes(std::span(records))));
    KERNELS_TRY(device.Download(device_cells.get(), std::as_writable_bytes(std::span(cells))));
    ++tally->launches;
    Count(expected, cells, records, args.token, tally);
    if (tally->silent) return Success();
  }
  return Success();
}

std::string DescribeWrong(const Tally& tally) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [unit, what] : tally.wrong) {
    if (named++ == kNamedUnits) break;
    text += (text.empty() ? "unit " : "; unit ") + std::to_string(unit) + ": " + what;
  }
  if (tally.wrong.size() > kNamedUnits) {
    text += "; " + std::to_string(tally.wrong.size() - kNamedUnits) + " more units wrong";
  }
  return text.empty() ? "cell of the whole device, no block's own: " + tally.device_wrong : text;
}

Outcome<CheckResult> Run(Device& device, const CheckRequest& request) {
  const std::uint32_t units = std::max(1u, device.info().compute_units);
  Tally tally;
  for (std::uint32_t round = 0; round < request.rounds; ++round) {
    KERNELS_TRY(RunRound(device, request, request.seed + round, &tally));
    if (tally.silent) break;
  }
  CheckResult result;
  result.value = std::to_string(tally.units.size());
  result.unit = "computeUnits";
  if (tally.silent) {
    result.verdict = VerdictKind::kFail;
    result.evidence = "the device reported success, but block " + std::to_string(*tally.silent) +
                      " left no result";
  } else if (!tally.wrong.empty() || !tally.device_wrong.empty()) {
    result.verdict = VerdictKind::kFail;
    result.evidence = DescribeWrong(tally);
  } else {
    result.evidence = result.value + " of " + std::to_string(units) + " compute units ran, in " +
                      std::to_string(tally.launches) + " launches";
    if (tally.units.size() >= units) {
      result.verdict = VerdictKind::kPass;
      result.evidence += ", 10 operations exact";
    }
  }
  return result;
}

}  // namespace

CheckResult RunAtomics(Device& device, const CheckRequest& request) {
  return RunBody([&] { return Run(device, request); });
}

}  // namespace bimetal::kernels
