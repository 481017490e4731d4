#include "core/queue/explain.h"

#include <algorithm>
#include <tuple>

#include "core/cost/cost.h"
#include "core/placement/shape.h"
#include "core/queue/elastic.h"
#include "core/queue/gate.h"
#include "core/queue/preempt.h"
#include "core/queue/rank.h"

namespace bimetal::core::queue {
namespace {

std::string Number(std::int64_t n) { return std::to_string(n); }

std::string Sentence(const VariantFinding& finding) {
  const VariantBlocker& blocker = finding.blocker;
  std::string text = "variant " + blocker.variant + " needs " + Number(blocker.need) +
                     (blocker.need == 1 ? " device" : " devices") + " in one pool";
  if (blocker.reason == "WaitingForPrice") {
    return text + "; it can start when " + blocker.unblocked_by;
  }
  text += ", ";
  if (blocker.reason == "WaitingForQuota") {
    text += Number(blocker.free) + " are left of the queue's quota";
  } else if (blocker.reason == "ExceedsLimit") {
    text += "the queue has a limit of " + Number(blocker.free);
  } else {
    text += Number(blocker.free) + (blocker.free == 1 ? " is free" : " are free");
  }
  return text + (finding.never ? "; it can never start unless " : "; it can start when ") +
         blocker.unblocked_by;
}

// Waiting before never; then the smallest shortfall.
auto Distance(const VariantFinding& finding) {
  const VariantBlocker& blocker = finding.blocker;
  return std::tuple(finding.never, blocker.reason == "NoMatchingDevice",
                    std::max<std::int64_t>(0, blocker.need - blocker.free));
}

}  // namespace

std::string_view ReasonOf(placement::Obstacle obstacle) {
  switch (obstacle) {
    case placement::Obstacle::kNoMatchingDevice:
      return "NoMatchingDevice";
    case placement::Obstacle::kExceedsCapacity:
      return "ExceedsCapacity";
    case placement::Obstacle::kWaitingForValidation:
      return "WaitingForValidation";
    case placement::Obstacle::kUnknownTopology:
      return "Misconfigured";
    case placement::Obstacle::kWaitingForTopology:
      return "WaitingForTopology";
    case placement::Obstacle::kWaitingForNodeCapacity:
      return "WaitingForNodeCapacity";
    case placement::Obstacle::kWaitingForDevices:
    case placement::Obstacle::kNone:
      break;
  }
  return "WaitingForDevices";
}

std::string Cut(std::string text, std::size_t max) {
  if (text.size() <= max) return text;
  std::size_t end = max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "...";
}

void Summarise(const std::vector<VariantFinding>& findings, Refusal* refusal) {
  std::string message;
  refusal->never = true;
  for (const VariantFinding& finding : findings) {
    message += (message.empty() ? "" : ". ") + Sentence(finding);
    refusal->never = refusal->never && finding.never;
    refusal->blockers.push_back(finding.blocker);
  }
  const auto closest = std::min_element(
      findings.begin(), findings.end(),
      [](const VariantFinding& a, const VariantFinding& b) { return Distance(a) < Distance(b); });
  if (closest != findings.end()) refusal->reason = closest->blocker.reason;
  refusal->message = Cut(std::move(message), kMaxMessage);
}

namespace {

bool IsNever(placement::Obstacle obstacle) {
  return obstacle == placement::Obstacle::kNoMatchingDevice ||
         obstacle == placement::Obstacle::kExceedsCapacity ||
         obstacle == placement::Obstacle::kUnknownTopology;
}

// The lane that comes closest: waiting before never, then what is missing least.
auto LaneDistance(const VariantFinding& finding) {
  const VariantBlocker& blocker = finding.blocker;
  return std::tuple(finding.never, blocker.reason == "NoMatchingDevice", -blocker.free);
}

std::string FullName(const std::string& name_space, const std::string& name) {
  return name_space + "/" + name;
}

// "3 jobs (team/a, team/b, ...)".
std::string Jobs(const std::vector<Tenant*>& tenants) {
  constexpr std::size_t kNamed = 3;
  std::string text = Number(static_cast<std::int64_t>(tenants.size())) +
                     (tenants.size() == 1 ? " job (" : " jobs (");
  for (std::size_t i = 0; i < tenants.size() && i < kNamed; ++i) {
    const Running& running = tenants[i]->running;
    text += (i == 0 ? "" : ", ") + FullName(running.name_space, running.name);
  }
  return text + (tenants.size() > kNamed ? ", ...)" : ")");
}

}  // namespace

std::optional<StartEstimate> EstimateOf(const HeldPlace& held, TimePoint now) {
  StartEstimate estimate{.earliest = now, .latest = now};
  for (const Tenant* tenant : held.awaits) {
    if (tenant->leaving) {
      estimate.latest.reset();
      continue;
    }
    const auto expected = ExpectedEnd(tenant->running, now);
    const auto latest = LatestEnd(tenant->running);
    if (!expected && !latest) return std::nullopt;
    estimate.earliest = std::max(estimate.earliest, expected.value_or(now));
    if (!latest) {
      estimate.latest.reset();
    } else if (estimate.latest) {
      estimate.latest = std::max(*estimate.latest, *latest);
    }
  }
  return estimate;
}

std::optional<VariantFinding> RefusalWriter::FindingOfHold(const Waiting& waiting,
                                                           std::size_t variant) const {
  if (waiting.held == nullptr || waiting.held->hold.variant != variant) return std::nullopt;
  const HeldPlace& held = *waiting.held;
  VariantFinding finding;
  VariantBlocker& blocker = finding.blocker;
  blocker.variant = waiting.job->variants[variant].name;
  blocker.need = held.devices;
  for (const auto& shift : held.shifts) blocker.free += shift.devices;
  blocker.reason = held.hold.by_eviction ? "WaitingForPreemption" : "Reserved";
  const std::string who = Jobs(held.awaits);
  if (held.hold.by_eviction) {
    blocker.unblocked_by = who + " that " + (held.awaits.size() == 1 ? "makes" : "make") +
                           " room for it in pool " + held.hold.pool.value + " " +
                           (held.awaits.size() == 1 ? "has" : "have") + " ended";
  } else {
    const auto when = EstimateOf(held, now_);
    blocker.unblocked_by = who + " in pool " + held.hold.pool.value + " " +
                           (held.awaits.size() == 1 ? "has" : "have") +
                           " ended; what comes free is held for it, because it has waited so long" +
                           (when ? ", from about " + FormatTime(when->earliest) : "");
  }
  return finding;
}

const Job* RefusalWriter::AheadOf(const Waiting& waiting, Vendor vendor) const {
  const auto heads = heads_.find(waiting.queue);
  if (heads == heads_.end()) return nullptr;
  const auto head = heads->second.find(vendor);
  if (head == heads->second.end() || head->second == waiting.job) return nullptr;
  const Job& ahead = *head->second;
  const Job& job = *waiting.job;
  const bool before =
      Rank{ahead.priority, ahead.created, ahead.uid} < Rank{job.priority, job.created, job.uid};
  return before ? &ahead : nullptr;
}

const placement::GangResult& RefusalWriter::PlaceIn(Lane& lane, const Job& job,
                                                    const Variant& variant) {
  const auto [known, added] = lane.explained.try_emplace(placement::ShapeOf(job, variant));
  if (!added) return known->second;
  if (!lane.refused.contains(known->first) && space_.Search(lane, job, variant)) {
    known->second.need = DevicesNeeded(job, variant);  // only its queue keeps it back
    known->second.free = lane.board.FreeFor(variant);
  } else {
    known->second = lane.explainer.Explain(job, variant);
  }
  return known->second;
}

void RefusalWriter::FindQuota(const Waiting& waiting, Lane& lane, const Variant& variant,
                              VariantFinding* finding) const {
  VariantBlocker& blocker = finding->blocker;
  const std::string vendor = std::string(VendorName(variant.vendor));
  const auto name_of = [&](const QuotaShortage& s) {
    return "queue " + space_.tree.At(s.queue).name.value;
  };
  if (const auto never = space_.tree.NeverMore(waiting.queue, lane.kind, blocker.need)) {
    blocker.reason = "ExceedsLimit";
    blocker.free = never->limit;
    const std::string what = never->obstacle == QuotaObstacle::kPerJob ? "perJob.maxDevices"
                             : never->obstacle == QuotaObstacle::kTotalLimit
                                 ? "totalLimit"
                                 : "the limit for " + never->device_class + " devices";
    blocker.unblocked_by = what + " of " + name_of(*never) + " rises from " +
                           std::to_string(never->limit) + " to " + std::to_string(blocker.need) +
                           ", or the job asks for fewer";
    finding->never = true;
    return;
  }
  const auto shortage = space_.Shortage(waiting.queue, lane.kind, blocker.need);
  if (!shortage) return;
  blocker.reason = "WaitingForQuota";
  blocker.free = shortage->left;
  const std::string more = std::to_string(blocker.need - shortage->left) + " more ";
  switch (shortage->obstacle) {
    case QuotaObstacle::kRunningJobs:
      blocker.free = 0;
      blocker.unblocked_by = "one of the " + std::to_string(shortage->limit) +
                             " running jobs that " + name_of(*shortage) + " may have has ended";
      return;
    case QuotaObstacle::kLending:
      blocker.unblocked_by =
          more + vendor + " devices are free beside those that other queues keep for themselves";
      return;
    case QuotaObstacle::kTotalLimit:
      blocker.unblocked_by = "jobs of " + name_of(*shortage) + " release " + more + "devices";
      return;
    case QuotaObstacle::kLimit:
    case QuotaObstacle::kPerJob:
      blocker.unblocked_by = "jobs of " + name_of(*shortage) + " release " + more +
                             shortage->device_class + " devices";
      return;
  }
}

VariantFinding RefusalWriter::FindIn(Lane& lane, const Waiting& waiting, const Job& job,
                                     std::size_t index) {
  const Variant& variant = job.variants[index];
  const placement::GangResult& placed = PlaceIn(lane, job, variant);
  VariantFinding finding;
  finding.blocker.variant = variant.name;
  finding.blocker.need = DevicesNeeded(job, variant);
  finding.blocker.free = placed.free;
  finding.blocker.reason = ReasonOf(placed.obstacle);
  finding.blocker.unblocked_by = placed.unblocked_by;
  finding.never = IsNever(placed.obstacle);
  if (finding.never) return finding;
  FindQuota(waiting, lane, variant, &finding);
  if (finding.never || finding.blocker.reason == "WaitingForQuota") return finding;
  if (const Job* ahead = AheadOf(waiting, variant.vendor)) {
    finding.blocker.reason = "WaitingForDevices";
    finding.blocker.unblocked_by = "job " + FullName(ahead->name_space, ahead->name) +
                                   ", which is ahead of it in the Strict queue " +
                                   space_.tree.At(waiting.queue).name.value + ", has started";
  } else if (finding.blocker.unblocked_by.empty()) {
    finding.blocker.unblocked_by = "devices that are held for others are given back";
  }
  return finding;
}

// The lane that comes closest, of an elastic job for its smallest gang; nullopt: the vendor has no
// lane.
std::optional<VariantFinding> RefusalWriter::FindInAny(const Waiting& waiting, std::size_t index) {
  const auto& lanes = space_.lanes.Of(waiting.job->variants[index].vendor);
  if (lanes.empty()) return std::nullopt;
  std::optional<VariantFinding> best;
  for (Lane* lane : lanes) {
    const Job* in = choice_.In(lane->pool, *waiting.job, index);
    if (in == nullptr) continue;
    std::optional<Job> made;
    VariantFinding finding = FindIn(*lane, waiting, Smallest(*in, &made), index);
    if (!best || LaneDistance(finding) < LaneDistance(*best)) best = std::move(finding);
  }
  return best ? best : TooDear(*waiting.job, index);
}

// Every pool asks more than the job pays, or names no price.
VariantFinding RefusalWriter::TooDear(const Job& job, std::size_t index) const {
  const Variant& variant = job.variants[index];
  std::optional<std::int64_t> lowest;
  for (Lane* lane : space_.lanes.Of(variant.vendor)) {
    const auto price = choice_.LowestPrice(lane->pool, variant);
    if (price) lowest = std::min(*price, lowest.value_or(*price));
  }
  const auto text = [](std::int64_t nano) { return cost::FormatMoney(NanoCurrency{nano}); };
  VariantFinding finding;
  finding.blocker.variant = variant.name;
  finding.blocker.need = DevicesNeeded(job, variant);
  finding.blocker.reason = "WaitingForPrice";
  finding.blocker.unblocked_by = "a device of it costs at most " +
                                 text(*variant.max_nano_per_hour) + " an hour (maxPricePerHour); " +
                                 (lowest ? "the cheapest costs " + text(*lowest)
                                         : "no PriceBook of its pools has a price for it now");
  return finding;
}

// What the job's own choice among its variants adds.
void RefusalWriter::AddChoice(const Waiting& waiting, std::size_t index,
                              VariantFinding* finding) const {
  VariantBlocker& blocker = finding->blocker;
  if (finding->never || blocker.reason == "WaitingForPrice") return;
  if (!MayUse(*waiting.job, index, now_)) {
    blocker.unblocked_by = "it has waited for " + FormatDuration(*waiting.job->fallback_after) +
                           " (spec.selection.fallbackAfter), and " + blocker.unblocked_by;
    return;
  }
  const auto& order = waiting.order;
  if (order.empty()) return;
  const std::string first = "variant " + waiting.job->variants[order.front()].name;
  if (std::find(order.begin(), order.end(), index) == order.end()) {
    blocker.reason = "WaitingForCheaperVariant";
    blocker.unblocked_by = "it costs no more for the same work than " + first +
                           ", for which the job waits (spec.selection: LowestCost)";
  } else if (waiting.outpaced.contains(index)) {
    blocker.reason = "WaitingForFasterVariant";
    blocker.unblocked_by =
        "waiting for " + first + " no longer ends the job sooner (spec.selection: EarliestStart)";
  }
}

VariantFinding RefusalWriter::Find(const Waiting& waiting, std::size_t index) {
  if (auto held = FindingOfHold(waiting, index)) return *held;
  if (auto best = FindInAny(waiting, index)) {
    AddChoice(waiting, index, &*best);
    return *best;
  }
  const Variant& variant = waiting.job->variants[index];
  VariantFinding none;
  none.blocker.variant = variant.name;
  none.blocker.need = DevicesNeeded(*waiting.job, variant);
  none.blocker.reason = "NoMatchingDevice";
  none.blocker.unblocked_by =
      "a GPUPool of vendor " + std::string(VendorName(variant.vendor)) + " exists";
  none.never = true;
  return none;
}

Refusal RefusalWriter::Write(const Waiting& waiting) {
  Refusal refusal;
  refusal.job = waiting.job->uid;
  if (!waiting.reason.empty()) {
    refusal.reason = waiting.reason;
    refusal.message = Cut(waiting.message, kMaxMessage);
    refusal.never = waiting.never;
    return refusal;
  }
  std::vector<VariantFinding> findings;
  for (std::size_t i = 0; i < waiting.job->variants.size(); ++i) {
    findings.push_back(Find(waiting, i));
  }
  Summarise(findings, &refusal);
  if (waiting.held != nullptr) {
    refusal.reason = waiting.held->hold.by_eviction ? "WaitingForPreemption" : "Reserved";
    refusal.estimate = EstimateOf(*waiting.held, now_);
  }
  return refusal;
}

}  // namespace bimetal::core::queue
