#include "operator/controllers/nodes.h"

#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/node_facts.h"

namespace bimetal::op {

using core::Vendor;
using core::admission::Decision;
using core::admission::Phase;

namespace {

constexpr Millis kRetry = Seconds(5);  // after a write that failed

std::set<std::string> FailedChecks(const core::admission::Memory& memory) {
  std::set<std::string> out;
  for (const auto& [id, record] : memory.records) {
    if (!record.failed_check.empty()) out.insert(record.failed_check);
  }
  return out;
}

}  // namespace

const api::GPUNode* FindGpuNode(const Store& store, const std::string& name) {
  const auto it = store.gpu_nodes.find(name);
  return it == store.gpu_nodes.end() ? nullptr : &it->second;
}

NodeController::NodeController(const Clock& clock, Store& store, WriteSink& writes,
                               NodeOptions options, std::function<void()> changed)
    : clock_(clock),
      store_(store),
      writes_(writes),
      options_(std::move(options)),
      changed_(std::move(changed)) {}

void NodeController::Start() {
  started_ = clock_.Now();
  TouchAll();
}

void NodeController::TouchAll() {
  for (const auto& [name, node] : store_.nodes) touched_.insert(name);
  for (const auto& [name, node] : store_.gpu_nodes) touched_.insert(name);
  for (const auto& [name, state] : states_) touched_.insert(name);
}

const core::Pool* NodeController::PoolOf(const std::string& node, Vendor vendor) const {
  const auto it = store_.nodes.find(node);
  return it == store_.nodes.end() ? nullptr : PoolFor(pools_, vendor, it->second.node.labels);
}

const api::ValidationProfileSpec* NodeController::ProfileOf(const core::Pool* pool) const {
  if (pool == nullptr) return nullptr;
  const auto it = store_.profiles.find(pool->profile);
  return it == store_.profiles.end() ? nullptr : &it->second.spec();
}

void NodeController::AskBreakers(const core::Pool* pool, core::admission::Facts& facts) const {
  if (pool == nullptr || !facts.report) return;
  const auto& state = breakers_.StateOf(pool->name.value);
  const auto& limits = breakers_.LimitsOf(pool->name.value);
  facts.no_slot = state.NoSlot(limits);
  facts.breaker = state.Held(facts.report->driver_version, limits);
  facts.breaker_planned = state.HeldPlanned(facts.report->driver_version, limits);
}

core::admission::Facts NodeController::FactsOf(const std::string& name, VendorState& state,
                                               Vendor vendor) {
  const auto* object = FindGpuNode(store_, name);
  core::admission::Facts facts;
  facts.vendor = vendor;
  facts.node_exists = store_.nodes.contains(name);
  facts.hold = object != nullptr && object->spec().hold();
  facts.revalidate = RevalidateWord(object);
  facts.report = state.report;
  if (facts.report && state.suspicion) {
    facts.report->faults.push_back(*state.suspicion);
    state.suspicion.reset();
  }
  facts.run = state.run;
  facts.pod = FindRunPod(name, vendor, state);
  if (state.pending && state.pending->uid.empty()) {
    // The create is under way: as if the pod stood there, so that no second one is asked for.
    facts.pod = core::admission::RunPod{.id = state.pending->name,
                                        .created = state.pending->created,
                                        .ended = false,
                                        .trouble = state.pending->trouble,
                                        .kind = state.pending->kind,
                                        .devices = state.pending->devices};
  }
  return facts;
}

void NodeController::NoteStanding(const std::string& name, VendorState& state,
                                  const core::Pool* pool, bool running) {
  const std::string pool_name = pool == nullptr ? "" : pool->name.value;
  if (state.pool != pool_name && !state.pool.empty()) breakers_.Remove(state.pool, name);
  state.pool = pool_name;
  if (pool == nullptr || !state.decision) return;
  const Decision& decision = *state.decision;
  breakers_.Put(
      pool_name, name,
      {.driver_version = state.stack.driver_version(),
       .running = running || state.pending.has_value(),
       .open = !decision.open.empty(),
       .troubled = decision.phase == Phase::kQuarantined || decision.phase == Phase::kInconclusive,
       .failed_checks = FailedChecks(state.memory)});
  breakers_.SetWaiting(pool_name, name, decision.waits);
}

void NodeController::NoteOldStanding(const std::string& name, const NodeState& state, Vendor vendor,
                                     VendorState& vendor_state) {
  const core::Pool* pool = PoolOf(name, vendor);
  if (pool == nullptr) return;
  for (const auto& old : state.written.vendors()) {
    if (old.vendor() != core::VendorName(vendor)) continue;
    vendor_state.pool = pool->name.value;
    breakers_.Put(pool->name.value, name,
                  {.driver_version = old.driver_version(),
                   .running = store_.runs_by_node.contains(name),
                   .open = old.phase() == "Admitted",
                   .troubled = old.phase() == "Quarantined" || old.phase() == "Inconclusive",
                   .failed_checks = FailedChecks(vendor_state.memory)});
  }
}

void NodeController::DecideVendor(const std::string& name, NodeState& state, Vendor vendor) {
  auto& vendor_state = state.vendors[vendor];
  const TimePoint now = clock_.Now();
  // After our own start an agent gets time to report before its silence means anything.
  if (!vendor_state.report && now < *started_ + options_.stale_after) {
    const TimePoint due = *started_ + options_.stale_after;
    if (!state.wake || due < *state.wake) state.wake = due;
    NoteOldStanding(name, state, vendor, vendor_state);
    return;
  }
  const core::Pool* pool = PoolOf(name, vendor);
  const api::ValidationProfileSpec* profile = ProfileOf(pool);
  vendor_state.no_pool = pool == nullptr;
  if (pool != nullptr) breakers_.SetLimits(pool->name.value, LimitsOf(profile));

  core::admission::Facts facts = FactsOf(name, vendor_state, vendor);
  AskBreakers(pool, facts);
  Decision decision =
      core::admission::Decide(facts, vendor_state.memory,
                              PolicyOf(pool, profile, options_.stale_after, facts.revalidate), now);

  if (vendor_state.run) {
    if (decision.memory.last_run != vendor_state.run->id) {
      state.unacknowledged.erase(vendor_state.run->id);
    } else if (options_.judged && !decision.judged.empty()) {
      options_.judged(vendor_state.run->level, vendor, decision.judged);
    }
    vendor_state.run.reset();
  }
  vendor_state.memory = decision.memory;
  const bool open_changed = !vendor_state.decision ||
                            vendor_state.decision->open != decision.open ||
                            vendor_state.decision->shut != decision.shut;
  if (decision.wake && (!state.wake || *decision.wake < *state.wake)) state.wake = decision.wake;
  if (!decision.end_run.empty()) {
    EndRun(name, decision.end_run);
    vendor_state.pending.reset();
  }
  // A run takes its slot until its pod is asked to go: pods are what a limit is about.
  const bool running = facts.pod.has_value();
  vendor_state.decision = std::move(decision);
  if (vendor_state.decision->start_run && pool != nullptr && !vendor_state.pending) {
    StartRun(name, vendor, state, *pool);
  }
  NoteStanding(name, vendor_state, pool, running);
  if (open_changed) changed_();
}

void NodeController::DecideNode(const std::string& name) {
  if (!store_.nodes.contains(name) && !store_.gpu_nodes.contains(name)) {
    // Gone, and its GPUNode was deleted by somebody: nothing is left to say.
    if (const auto it = states_.find(name); it != states_.end()) {
      for (const auto& [vendor, vendor_state] : it->second.vendors) {
        breakers_.Remove(vendor_state.pool, name);
      }
      states_.erase(it);
    }
    return;
  }
  auto& state = states_[name];
  Restore(name, state);
  state.wake.reset();
  if (state.vendors.empty()) {
    if (!store_.gpu_nodes.contains(name)) states_.erase(name);  // a node without GPUs
    return;
  }
  for (const auto vendor : core::kVendors) {
    if (state.vendors.contains(vendor)) DecideVendor(name, state, vendor);
  }
  const bool decided =
      std::any_of(state.vendors.begin(), state.vendors.end(),
                  [](const auto& entry) { return entry.second.decision.has_value(); });
  if (!decided) return;
  if (!store_.gpu_nodes.contains(name)) {
    CreateGpuNode(name, state);
  } else {
    WriteStatus(name, state);
  }
  PatchNode(name, state);
  TellFindings(name, state);
  TellHolders(name, state);
}

void NodeController::RetrySoon(const std::string& name) {
  auto& state = states_[name];
  const TimePoint due = clock_.Now() + kRetry;
  if (!state.wake || due < *state.wake) state.wake = due;
}

void NodeController::DecideWaiting() {
  for (const auto& pool : breakers_.PoolsThatWait()) {
    for (const auto& name : breakers_.TurnOf(pool)) DecideNode(name);
  }
}

void NodeController::Reconcile() {
  if (!started_) return;
  const TimePoint now = clock_.Now();
  pools_ = PoolsOf(store_);
  for (auto& [name, state] : states_) {
    if (state.wake && *state.wake <= now) touched_.insert(name);
  }
  const std::set<std::string> names = std::exchange(touched_, {});
  for (const auto& name : names) DecideNode(name);
  DecideWaiting();
}

std::optional<TimePoint> NodeController::NextWake() const {
  std::optional<TimePoint> next;
  for (const auto& [name, state] : states_) {
    if (state.wake && (!next || *state.wake < *next)) next = state.wake;
  }
  return next;
}

std::vector<Vendor> NodeController::Settling() const {
  std::set<Vendor> out;
  if (!started_ || clock_.Now() >= *started_ + options_.stale_after) return {};
  for (const auto& [name, object] : store_.gpu_nodes) {
    const auto record = store_.nodes.find(name);
    if (record == store_.nodes.end() || !record->second.node.ready) continue;
    const auto state = states_.find(name);
    for (const auto& status : object.status().vendors()) {
      const auto vendor = core::ParseVendor(status.vendor());
      if (!vendor || status.phase() != "Admitted") continue;
      if (state != states_.end()) {
        const auto known = state->second.vendors.find(*vendor);
        if (known != state->second.vendors.end() && known->second.decision) continue;
      }
      out.insert(*vendor);
    }
  }
  return {out.begin(), out.end()};
}

std::map<Vendor, core::NodeDevices> NodeController::DevicesOf(const std::string& node) const {
  std::map<Vendor, core::NodeDevices> out;
  const auto it = states_.find(node);
  const auto record = store_.nodes.find(node);
  if (it == states_.end() || record == store_.nodes.end()) return out;
  for (const auto& [vendor, vendor_state] : it->second.vendors) {
    const core::Pool* pool = PoolOf(node, vendor);
    core::NodeDevices devices;
    if (pool != nullptr) {
      devices.pool = pool->name;
      const auto offered = record->second.offered.find(pool->resource_name);
      if (offered != record->second.offered.end()) devices.offered = offered->second;
    }
    if (vendor_state.decision) {
      const auto& decision = *vendor_state.decision;
      devices.precisions = {decision.capabilities.begin(), decision.capabilities.end()};
      const std::string& level = decision.memory.level;  // "L2", or empty before the first pass
      if (LevelIn(level) == level && !level.empty()) devices.validation_level = level[1] - '0';
    }
    for (const auto& device : it->second.inventory.devices()) {
      if (device.vendor() != core::VendorName(vendor)) continue;
      core::Device d;
      d.id = DeviceId{device.id()};
      d.model = device.model();
      if (device.has_memory_bytes()) d.memory_bytes = device.memory_bytes();
      d.open = vendor_state.decision && std::binary_search(vendor_state.decision->open.begin(),
                                                           vendor_state.decision->open.end(), d.id);
      devices.devices.push_back(std::move(d));
    }
    std::sort(devices.devices.begin(), devices.devices.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    out[vendor] = std::move(devices);
  }
  return out;
}

bool NodeController::OnHold(const std::string& node) const {
  const auto* object = FindGpuNode(store_, node);
  return object != nullptr && object->spec().hold();
}

std::string NodeController::ModelOf(const std::string& node, Vendor vendor) const {
  const auto* object = FindGpuNode(store_, node);
  const auto it = states_.find(node);
  if (it != states_.end()) {
    for (const auto& device : it->second.inventory.devices()) {
      if (device.vendor() == core::VendorName(vendor)) return device.model();
    }
  }
  if (object == nullptr) return "";
  for (const auto& device : object->status().devices()) {
    if (device.vendor() == core::VendorName(vendor)) return device.model();
  }
  return "";
}

std::map<std::string, std::string> NodeController::Phases() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, object] : store_.gpu_nodes) {
    const auto it = states_.find(name);
    out[name] = it == states_.end() ? object.status().phase() : it->second.last_phase;
  }
  return out;
}

std::map<std::string, std::vector<api::FindingStatus>> NodeController::Findings() const {
  std::map<std::string, std::vector<api::FindingStatus>> out;
  for (const auto& [name, state] : states_) {
    if (state.written.findings_size() == 0) continue;
    out[name] = {state.written.findings().begin(), state.written.findings().end()};
  }
  return out;
}

std::string NodeController::BreakerText(const std::string& pool) const {
  return breakers_.StateOf(pool).Text(breakers_.LimitsOf(pool));
}

}  // namespace bimetal::op
