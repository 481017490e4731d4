// Closing the rows of a device.
#include "core/cost/account.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "core/cost/energy_curve.h"
#include "core/cost/running_total.h"
#include "core/model/saturate.h"

namespace bimetal::core::cost {
namespace {

// A part of the device during a stretch in which nothing changes.
struct Part {
  DeviceState state = DeviceState::kIdle;
  const Holding* holding = nullptr;
  Ratio share;
};

tl::unexpected<Error> DataError(const DeviceTimeline& timeline, const std::string& what) {
  return Fail(ErrorCode::kData, "device " + timeline.device.value + ": " + what);
}

// Of two conditions that meet, the one that says more about the device.
int Rank(DeviceState state) {
  switch (state) {
    case DeviceState::kOffline:
      return 5;
    case DeviceState::kUnhealthy:
      return 4;
    case DeviceState::kDraining:
      return 3;
    case DeviceState::kReserved:
      return 2;
    case DeviceState::kFragmented:
      return 1;
    case DeviceState::kIdle:
    case DeviceState::kAllocated:
      break;
  }
  return 0;
}

Phase PhaseAt(const Holding& holding, TimePoint at) {
  if (holding.teardown && *holding.teardown <= at) return Phase::kTeardown;
  return holding.running && *holding.running <= at ? Phase::kRunning : Phase::kStartup;
}

// Ten years of hours: longer is a mistake, and would take for ever.
Status CheckWindow(const DeviceTimeline& timeline) {
  constexpr __int128 kLongest = static_cast<__int128>(kMsPerMonth) * 120;
  if (static_cast<__int128>(timeline.end.ms) - timeline.begin.ms <= kLongest) return {};
  return DataError(timeline, "a window longer than ten years");
}

template <class Spanning>
bool Holds(const Spanning& one, TimePoint at) {
  return one.begin <= at && at < one.end;
}

// Each holding once, in the order of rows.
Result<std::vector<const Holding*>> Holdings(const DeviceTimeline& timeline) {
  std::map<std::string, const Holding*> by_id;
  for (const Holding& holding : timeline.holdings) {
    if (holding.share <= Ratio() || holding.share > Ratio::One()) {
      return DataError(timeline, "holding " + holding.id + " has a share outside 0 to 1");
    }
    const auto [known, added] = by_id.emplace(holding.id, &holding);
    if (!added && *known->second != holding) {
      return DataError(timeline, "holding " + holding.id + " is told in two ways");
    }
  }
  std::vector<const Holding*> out;
  for (const auto& [id, holding] : by_id) out.push_back(holding);
  std::sort(out.begin(), out.end(), [](const Holding* a, const Holding* b) {
    return std::tie(a->job, a->attempt, a->id) < std::tie(b->job, b->attempt, b->id);
  });
  return out;
}

class Closer {
 public:
  Closer(const DeviceTimeline& timeline, std::vector<const Holding*> holdings,
         const EnergyCurve& energy)
      : timeline_(timeline), holdings_(std::move(holdings)), energy_(energy) {
    FindEdges();
  }

  // The rows of a stretch under one set of rates.
  Status Close(const RunningTotal& total);
  std::vector<Row> TakeRows() { return std::move(rows_); }

 private:
  void FindEdges();
  Result<std::vector<Part>> PartsAt(TimePoint at) const;
  Status AddFree(TimePoint at, Ratio free, std::vector<Part>& parts) const;
  void Deal(const RunningTotal& total, TimePoint begin, TimePoint end,
            const std::vector<Part>& parts);

  const DeviceTimeline& timeline_;
  std::vector<const Holding*> holdings_;
  const EnergyCurve& energy_;
  std::set<TimePoint> edges_;  // where a holder, phase, condition or layout changes
  std::vector<Row> rows_;
};

void Closer::FindEdges() {
  for (const Holding* holding : holdings_) {
    edges_.insert({holding->begin, holding->end});
    if (holding->running) edges_.insert(*holding->running);
    if (holding->teardown) edges_.insert(*holding->teardown);
  }
  for (const Condition& condition : timeline_.conditions) {
    edges_.insert({condition.begin, condition.end});
  }
  for (const Layout& layout : timeline_.layouts) edges_.insert(layout.from);
}

Status Closer::AddFree(TimePoint at, Ratio free, std::vector<Part>& parts) const {
  if (free == Ratio()) return {};
  DeviceState state = DeviceState::kIdle;
  for (const Condition& condition : timeline_.conditions) {
    if (Holds(condition, at) && Rank(condition.state) > Rank(state)) state = condition.state;
  }
  if (state != DeviceState::kIdle) {
    parts.push_back({.state = state, .holding = nullptr, .share = free});
    return {};
  }
  const Layout* layout = nullptr;
  for (const Layout& one : timeline_.layouts) {
    if (one.from <= at && (layout == nullptr || layout->from <= one.from)) layout = &one;
  }
  Ratio fragmented;
  if (layout != nullptr) {
    BIMETAL_TRY_ASSIGN(const Ratio useless, Subtract(Ratio::One(), layout->usable));
    fragmented = std::clamp(useless, Ratio(), free);
  }
  BIMETAL_TRY_ASSIGN(const Ratio idle, Subtract(free, fragmented));
  if (idle > Ratio()) parts.push_back({DeviceState::kIdle, nullptr, idle});
  if (fragmented > Ratio()) parts.push_back({DeviceState::kFragmented, nullptr, fragmented});
  return {};
}

Result<std::vector<Part>> Closer::PartsAt(TimePoint at) const {
  std::vector<Part> parts;
  Ratio held;
  for (const Holding* holding : holdings_) {
    if (!Holds(*holding, at)) continue;
    parts.push_back({DeviceState::kAllocated, holding, holding->share});
    auto sum = Add(held, holding->share);
    if (!sum) return DataError(timeline_, sum.error().message);
    held = *sum;
  }
  if (held > Ratio::One()) {
    return DataError(timeline_, "shares add up to " + std::to_string(held.numerator()) + "/" +
                                    std::to_string(held.denominator()) + " at " +
                                    FormatMicroTime(at));
  }
  auto free = Subtract(Ratio::One(), held);
  if (!free) return DataError(timeline_, free.error().message);
  if (auto added = AddFree(at, *free, parts); !added) {
    return DataError(timeline_, added.error().message);
  }
  return parts;
}

void Closer::Deal(const RunningTotal& total, TimePoint begin, TimePoint end,
                  const std::vector<Part>& parts) {
  const Amounts whole = total.Between(begin, end);
  std::vector<Ratio> shares;
  for (const Part& part : parts) shares.push_back(part.share);
  const auto device_ms = Apportion(whole.device_ms, shares);
  const auto unpriced_ms = Apportion(whole.unpriced_ms, shares);
  const auto unmetered_ms = Apportion(whole.unmetered_ms, shares);
  const auto millijoules = Apportion(whole.millijoules, shares);
  const auto hardware = Apportion(whole.hardware.v, shares);
  const auto energy = Apportion(whole.energy.v, shares);
  const auto labour = Apportion(whole.labour.v, shares);
  const EnergySource source = energy_.Source(begin, end);
  const bool told = energy_.CoveredBefore(end) - energy_.CoveredBefore(begin) >= whole.device_ms;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Row row;
    row.device = timeline_.device;
    row.begin = begin;
    row.end = end;
    row.state = parts[i].state;
    row.share = parts[i].share;
    if (const Holding* holding = parts[i].holding) {
      row.holding = holding->id;
      row.job = holding->job;
      row.attempt = holding->attempt;
      row.phase = PhaseAt(*holding, begin);
    }
    row.amounts = {.device_ms = device_ms[i],
                   .unpriced_ms = unpriced_ms[i],
                   .unmetered_ms = unmetered_ms[i],
                   .millijoules = millijoules[i],
                   .hardware = {hardware[i]},
                   .energy = {energy[i]},
                   .labour = {labour[i]}};
    row.energy_source = told ? source : EnergySource::kEstimated;
    row.missing = total.rates().missing;
    rows_.push_back(std::move(row));
  }
}

Status Closer::Close(const RunningTotal& total) {
  TimePoint begin = std::max(total.begin(), timeline_.begin);
  const TimePoint last = std::min(total.end(), timeline_.end);
  while (begin < last) {
    const auto edge = edges_.upper_bound(begin);
    const TimePoint end = edge == edges_.end() ? last : std::min(last, *edge);
    BIMETAL_TRY_ASSIGN(const auto parts, PartsAt(begin));
    Deal(total, begin, end, parts);
    begin = end;
  }
  return {};
}

}  // namespace

std::string_view DeviceStateName(DeviceState state) {
  switch (state) {
    case DeviceState::kAllocated:
      return "allocated";
    case DeviceState::kIdle:
      return "idle";
    case DeviceState::kReserved:
      return "reserved";
    case DeviceState::kFragmented:
      return "fragmented";
    case DeviceState::kDraining:
      return "draining";
    case DeviceState::kUnhealthy:
      return "unhealthy";
    case DeviceState::kOffline:
      break;
  }
  return "offline";
}

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kStartup:
      return "startup";
    case Phase::kRunning:
      return "running";
    case Phase::kTeardown:
      break;
  }
  return "teardown";
}

NanoCurrency Amounts::Total() const {
  return NanoCurrency{SaturatingAdd(SaturatingAdd(hardware.v, energy.v), labour.v)};
}

void Amounts::Add(const Amounts& other) {
  device_ms = SaturatingAdd(device_ms, other.device_ms);
  unpriced_ms = SaturatingAdd(unpriced_ms, other.unpriced_ms);
  unmetered_ms = SaturatingAdd(unmetered_ms, other.unmetered_ms);
  millijoules = SaturatingAdd(millijoules, other.millijoules);
  hardware.v = SaturatingAdd(hardware.v, other.hardware.v);
  energy.v = SaturatingAdd(energy.v, other.energy.v);
  labour.v = SaturatingAdd(labour.v, other.labour.v);
}

Result<std::vector<Row>> CloseRows(const DeviceTimeline& timeline, const PriceBook* book) {
  BIMETAL_TRY(CheckWindow(timeline));
  BIMETAL_TRY_ASSIGN(auto holdings, Holdings(timeline));
  auto energy = EnergyCurve::Make(timeline.energy);
  if (!energy) return DataError(timeline, energy.error().message);
  Closer closer(timeline, std::move(holdings), *energy);
  Status status;
  ForEachStretch(timeline, book, *energy, [&](const RunningTotal& total) {
    if (status) status = closer.Close(total);
  });
  BIMETAL_TRY(std::move(status));
  return closer.TakeRows();
}

Result<Amounts> DeviceCost(const DeviceTimeline& timeline, const PriceBook* book) {
  BIMETAL_TRY(CheckWindow(timeline));
  auto energy = EnergyCurve::Make(timeline.energy);
  if (!energy) return DataError(timeline, energy.error().message);
  Amounts sum;
  ForEachStretch(timeline, book, *energy, [&](const RunningTotal& total) {
    const TimePoint begin = std::max(total.begin(), timeline.begin);
    const TimePoint end = std::min(total.end(), timeline.end);
    if (begin < end) sum.Add(total.Between(begin, end));
  });
  return sum;
}

Amounts Sum(const std::vector<Row>& rows) {
  Amounts sum;
  for (const Row& row : rows) sum.Add(row.amounts);
  return sum;
}

}  // namespace bimetal::core::cost
