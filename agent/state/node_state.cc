#include "agent/state/node_state.h"

#include <algorithm>
#include <utility>

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxTaken = 64;

template <class List, class Condition>
bool EraseIf(List& list, const Condition& condition) {
  bool any = false;
  for (int i = list.size() - 1; i >= 0; --i) {
    if (!condition(list.Get(i))) continue;
    list.DeleteSubrange(i, 1);
    any = true;
  }
  return any;
}

bool SameOrders(const api::ReportNodeReply& reply, const SavedState& saved) {
  return std::equal(
      reply.orders().begin(), reply.orders().end(), saved.orders().begin(), saved.orders().end(),
      [](const auto& a, const auto& b) { return a.SerializeAsString() == b.SerializeAsString(); });
}

}  // namespace

NodeState::NodeState(SavedState saved) : saved_(std::move(saved)) {}

void NodeState::VoidOldBoot() {
  for (auto& order : *saved_.mutable_orders()) {
    order.clear_open_fingerprint();
    order.clear_open_devices();
    order.clear_expected_run();
  }
  saved_.clear_expected();
  saved_.clear_runs();
}

bool NodeState::Observe(const std::string& boot_id,
                        const std::map<std::string, std::string>& fingerprints) {
  bool changed = false;
  if (!boot_id.empty() && !boot_known_) {
    boot_known_ = true;
    boot_id_ = boot_id;
    if (saved_.boot_id() != boot_id) {
      VoidOldBoot();
      saved_.set_boot_id(boot_id);
      changed = true;
    }
  }
  fingerprints_ = fingerprints;
  for (auto& expected : *saved_.mutable_expected()) {
    const auto present = fingerprints_.find(expected.vendor());
    const bool same = present != fingerprints_.end() && present->second == expected.fingerprint();
    if (same || expected.fingerprint().empty()) continue;
    expected.clear_fingerprint();
    changed = true;
  }
  return changed;
}

bool NodeState::Apply(const api::ReportNodeReply& reply, TimePoint now) {
  if (!boot_known_) return false;
  const auto acknowledged = [&](const api::ValidationRun& run) {
    const auto& names = reply.acknowledged_runs();
    return std::find(names.begin(), names.end(), run.run()) != names.end();
  };
  bool changed = EraseIf(*saved_.mutable_runs(), acknowledged);
  if (SameOrders(reply, saved_)) return changed;
  *saved_.mutable_orders() = reply.orders();
  EraseIf(*saved_.mutable_expected(), [&](const ExpectedRun& expected) {
    const auto* order = OrderOf(expected.vendor());
    return order == nullptr || order->expected_run() != expected.run();
  });
  for (const auto& order : saved_.orders()) {
    if (order.expected_run().empty() || FindExpected(order.expected_run()) != nullptr) continue;
    auto* expected = saved_.add_expected();
    expected->set_run(order.expected_run());
    expected->set_vendor(order.vendor());
    expected->set_ordered_ms(now.ms);
    const auto present = fingerprints_.find(order.vendor());
    if (present != fingerprints_.end()) expected->set_fingerprint(present->second);
  }
  return true;
}

const api::VendorOrder* NodeState::OrderOf(std::string_view vendor) const {
  for (const auto& order : saved_.orders()) {
    if (order.vendor() == vendor) return &order;
  }
  return nullptr;
}

ExpectedRun* NodeState::FindExpected(std::string_view run) {
  for (auto& expected : *saved_.mutable_expected()) {
    if (expected.run() == run) return &expected;
  }
  return nullptr;
}

std::set<std::string> NodeState::AcceptableRuns() const {
  std::set<std::string> out;
  if (!boot_known_) return out;
  out.insert(taken_.begin(), taken_.end());
  for (const auto& expected : saved_.expected()) out.insert(expected.run());
  for (const auto& kept : saved_.runs()) out.insert(kept.run());
  return out;
}

Status NodeState::AddRun(api::ValidationRun run, const std::string& claimed_fingerprint) {
  if (std::find(taken_.begin(), taken_.end(), run.run()) != taken_.end()) return {};
  for (const auto& kept : saved_.runs()) {
    if (kept.run() == run.run()) return {};
  }
  const ExpectedRun* expected = boot_known_ ? FindExpected(run.run()) : nullptr;
  if (expected == nullptr) return Fail(ErrorCode::kNotFound, "unknown run " + run.run());
  if (expected->vendor() != run.vendor()) {
    return Fail(ErrorCode::kInvalid, "run " + run.run() + " was ordered for vendor " +
                                         expected->vendor() + ", not " + run.vendor());
  }
  std::size_t bytes = run.ByteSizeLong();
  for (const auto& kept : saved_.runs()) bytes += kept.ByteSizeLong();
  if (saved_.runs_size() >= static_cast<int>(kMaxRuns) || bytes > kMaxRunBytes) {
    return Fail(ErrorCode::kTooManyRequests, "too many runs wait for the operator");
  }
  run.clear_fingerprint();
  if (claimed_fingerprint.empty() || claimed_fingerprint == expected->fingerprint()) {
    run.set_fingerprint(expected->fingerprint());
  }
  taken_.push_back(run.run());
  if (taken_.size() > kMaxTaken) taken_.pop_front();
  *saved_.add_runs() = std::move(run);
  return {};
}

std::vector<api::ValidationRun> NodeState::RunsToReport() const {
  std::vector<api::ValidationRun> out;
  std::size_t bytes = 0;
  for (const auto& run : saved_.runs()) {
    bytes += run.ByteSizeLong();
    if (out.size() == kMaxRunsPerReport) break;
    // The oldest always goes: a single run fits a message (RunReader::kMaxRunBytes).
    if (!out.empty() && bytes > kMaxRunBytesPerReport) break;
    out.push_back(run);
  }
  return out;
}

}  // namespace bimetal::agent
