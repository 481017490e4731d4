// What agents report, and the orders that answer it.
#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/node_facts.h"
#include "operator/controllers/node_memory.h"
#include "operator/controllers/nodes.h"

namespace bimetal::op {

using core::Vendor;

namespace {

constexpr std::size_t kOldBoots = 8;
// The fleet's medians are counted anew at most this often: they move slowly, runs come in crowds.
constexpr Millis kMediansAge = Seconds(5);

}  // namespace

void NodeController::Restore(const std::string& name, NodeState& state) {
  if (state.restored) return;
  state.restored = true;
  const auto* object = FindGpuNode(store_, name);
  if (object == nullptr) return;
  state.written = object->status();
  state.last_phase = object->status().phase();
  if (state.boot_id.empty()) state.boot_id = object->status().boot_id();
  for (const auto& status : object->status().vendors()) {
    const auto vendor = core::ParseVendor(status.vendor());
    if (!vendor) continue;
    auto& vendor_state = state.vendors[*vendor];
    vendor_state.verdicts = {status.verdicts().begin(), status.verdicts().end()};
    vendor_state.rates = {status.rates().begin(), status.rates().end()};
    vendor_state.node_rates = NodeRatesOf(*object, status);
    auto& memory = vendor_state.memory;
    memory = LoadMemory(status);
    // What the memory speaks of is what was reported when it was written.
    if (status.fingerprint().empty()) continue;
    memory.seen_boot_id = object->status().boot_id();
    memory.seen_fingerprint = status.fingerprint();
  }
}

void NodeController::TakeInventory(const api::ReportNodeRequest& request, NodeState& state) {
  state.inventory = request.inventory();
  state.seq = request.seq();
  state.last_report = clock_.Now();
  for (const auto& stack : request.inventory().stacks()) {
    if (const auto vendor = core::ParseVendor(stack.vendor())) state.vendors[*vendor].stack = stack;
  }
  for (const auto& device : request.inventory().devices()) {
    if (const auto vendor = core::ParseVendor(device.vendor())) state.vendors[*vendor];
  }
  for (auto& [vendor, vendor_state] : state.vendors) {
    vendor_state.report = ReportOf(request, vendor, vendor_state.stack, *state.last_report);
  }
}

const core::validation::FleetMedians& NodeController::Medians() {
  const TimePoint now = clock_.Now();
  if (medians_at_ && now - *medians_at_ < kMediansAge) return medians_;
  std::vector<core::validation::NodeRate> rates;
  for (const auto& [name, state] : states_) {
    for (const auto& [vendor, vendor_state] : state.vendors) {
      rates.insert(rates.end(), vendor_state.node_rates.begin(), vendor_state.node_rates.end());
    }
  }
  medians_ = core::validation::MediansOf(rates);
  medians_at_ = now;
  return medians_;
}

void NodeController::TakeRun(const std::string& node, const api::ValidationRun& run, Vendor vendor,
                             NodeState& state) {
  auto& vendor_state = state.vendors[vendor];
  const api::ValidationProfileSpec* profile = ProfileOf(PoolOf(node, vendor));
  std::vector<core::validation::FloorOverride> overrides;
  if (profile != nullptr) {
    auto read = core::validation::OverridesFromApi(*profile);
    if (read) {
      overrides = std::move(*read);
    } else {
      Log(LogLevel::kWarning, "floors of a profile are not used",
          {{"node", node}, {"error", read.error().message}});
    }
  }
  const int degraded =
      profile == nullptr || profile->degraded_percent() == 0 ? 5 : profile->degraded_percent();
  const core::validation::Yardstick yardstick{.table = floors_,
                                              .overrides = overrides,
                                              .fleet = Medians(),
                                              .degraded_percent = degraded,
                                              .driver = vendor_state.stack.driver_version()};
  JudgedRun judged = JudgeRun(run, node, DeviceFactsOf(state.inventory, vendor),
                              state.inventory.simulated(), yardstick);
  vendor_state.run = std::move(judged.run);
  state.unacknowledged.insert(run.run());
  // A path run looks at what it was given and measures nothing.
  const auto pod = FindRunPod(node, vendor, vendor_state);
  if (pod && pod->id == run.run() && pod->kind == core::admission::RunKind::kPath) return;
  vendor_state.verdicts = std::move(judged.verdicts);
  vendor_state.rates = std::move(judged.rates);
  vendor_state.node_rates = std::move(judged.node_rates);
}

void NodeController::TakeRuns(const api::ReportNodeRequest& request, NodeState& state) {
  for (const auto& run : request.runs()) {
    const auto vendor = core::ParseVendor(run.vendor());
    if (!vendor) continue;
    if (run.run() == state.vendors[*vendor].memory.last_run ||
        state.unacknowledged.contains(run.run())) {
      continue;
    }
    TakeRun(request.node_name(), run, *vendor, state);
  }
}

api::ReportNodeReply NodeController::OnReport(const api::ReportNodeRequest& request) {
  const std::string& name = request.node_name();
  pools_ = PoolsOf(store_);
  auto& state = states_[name];
  Restore(name, state);
  const bool old_boot = std::find(state.old_boots.begin(), state.old_boots.end(),
                                  request.boot_id()) != state.old_boots.end();
  const bool same_boot = state.boot_id == request.boot_id();
  if (!old_boot && !(same_boot && request.seq() <= state.seq)) {
    if (!same_boot && !state.boot_id.empty()) {
      state.old_boots.push_back(state.boot_id);
      if (state.old_boots.size() > kOldBoots) state.old_boots.pop_front();
    }
    state.boot_id = request.boot_id();
    TakeInventory(request, state);
    TakeRuns(request, state);
    if (started_) DecideNode(name);
  }
  return ReplyTo(request);
}

api::ReportNodeReply NodeController::ReplyTo(const api::ReportNodeRequest& request) {
  const std::string& name = request.node_name();
  api::ReportNodeReply reply;
  const auto found = states_.find(name);
  if (found == states_.end()) {  // a node without GPUs is not remembered
    reply.set_accepted_seq(request.seq());
    return reply;
  }
  NodeState& state = found->second;
  reply.set_accepted_seq(state.seq);
  for (const auto& run : request.runs()) {
    if (!state.unacknowledged.contains(run.run())) reply.add_acknowledged_runs(run.run());
  }
  for (auto& [vendor, vendor_state] : state.vendors) {
    auto* order = reply.add_orders();
    order->set_vendor(std::string(core::VendorName(vendor)));
    if (const core::Pool* pool = PoolOf(name, vendor); pool != nullptr) {
      order->set_serve_device_plugin(pool->bimetal_plugin);
      order->set_resource_name(pool->resource_name);
      order->set_observe(!pool->enforce);
    }
    if (vendor_state.decision && vendor_state.report) {
      if (!vendor_state.decision->offer.empty()) {
        order->set_open_fingerprint(vendor_state.report->fingerprint);
      }
      for (const auto& device : vendor_state.decision->offer) order->add_open_devices(device.value);
    }
    if (vendor_state.pending) order->set_expected_run(vendor_state.pending->uid);
    if (const auto pod = FindRunPod(name, vendor, vendor_state); pod && !pod->ended) {
      order->set_expected_run(pod->id);
    }
  }
  return reply;
}

}  // namespace bimetal::op
