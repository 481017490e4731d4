#include "operator/controllers/nodes.h"

#include <algorithm>

#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/node_memory.h"
#include "operator/controllers/node_status.h"
#include "operator/pods/validation_pod.h"

namespace bimetal::op {
namespace {

using core::Vendor;
using core::admission::Decision;
using core::admission::Phase;

constexpr std::size_t kOldBoots = 8;
constexpr Millis kRetry = Seconds(5);  // after a write that failed

core::admission::DeviceHealth HealthOf(api::Health health) {
  switch (health) {
    case api::HEALTHY:
      return core::admission::DeviceHealth::kHealthy;
    case api::UNHEALTHY:
      return core::admission::DeviceHealth::kUnhealthy;
    default:
      return core::admission::DeviceHealth::kUnknown;
  }
}

core::admission::Run RunOf(const api::ValidationRun& run, bool simulated_node) {
  core::admission::Run out;
  out.id = run.run();
  out.fingerprint = run.fingerprint();
  // The CPU stands in for a device only where the device is simulated.
  const bool wrong_backend = !simulated_node && (run.backend() == "host" || run.simulated());
  for (const auto& verdict : run.verdicts()) {
    core::admission::CheckVerdict v;
    v.check = verdict.check();
    v.device = DeviceId{verdict.device()};
    v.verdict = core::admission::ParseVerdict(verdict.verdict())
                    .value_or(core::admission::Verdict::kInconclusive);
    v.evidence = verdict.evidence();
    if (wrong_backend) {
      v.verdict = core::admission::Verdict::kInconclusive;
      v.evidence = "the check ran on the host's CPU, not on the device";
    }
    out.verdicts.push_back(std::move(v));
  }
  return out;
}

const api::GPUNode* FindGpuNode(const Store& store, const std::string& name) {
  const auto it = store.gpu_nodes.find(name);
  return it == store.gpu_nodes.end() ? nullptr : &it->second;
}

}  // namespace

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

void NodeController::Restore(const std::string& name, NodeState& state) {
  if (state.restored) return;
  state.restored = true;
  const auto* object = FindGpuNode(store_, name);
  if (object == nullptr) return;
  state.written = object->status();
  state.last_phase = object->status().phase();
  if (state.boot_id.empty()) state.boot_id = object->status().boot_id();
  for (const auto& vendor_status : object->status().vendors()) {
    const auto vendor = core::ParseVendor(vendor_status.vendor());
    if (!vendor) continue;
    auto& memory = state.vendors[*vendor].memory;
    memory = LoadMemory(vendor_status);
    // What the memory speaks of is what was reported when it was written.
    if (vendor_status.fingerprint().empty()) continue;
    memory.seen_boot_id = object->status().boot_id();
    memory.seen_fingerprint = vendor_status.fingerprint();
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
    core::admission::Report report;
    report.received = *state.last_report;
    report.boot_id = request.boot_id();
    report.fingerprint = vendor_state.stack.fingerprint();
    for (const auto& device : request.inventory().devices()) {
      if (device.vendor() != core::VendorName(vendor)) continue;
      report.devices.push_back({DeviceId{device.id()}, HealthOf(device.health())});
    }
    std::sort(report.devices.begin(), report.devices.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    vendor_state.report = std::move(report);
  }
}

void NodeController::TakeRuns(const api::ReportNodeRequest& request, NodeState& state) {
  for (const auto& run : request.runs()) {
    const auto vendor = core::ParseVendor(run.vendor());
    if (!vendor) continue;
    auto& vendor_state = state.vendors[*vendor];
    if (run.run() == vendor_state.memory.last_run || state.unacknowledged.contains(run.run()))
      continue;
    vendor_state.run = RunOf(run, state.inventory.simulated());
    vendor_state.level = run.level();
    vendor_state.verdicts.clear();
    for (const auto& verdict : run.verdicts()) {
      if (verdict.verdict() != "Pass") vendor_state.verdicts.push_back(verdict);
    }
    state.unacknowledged.insert(run.run());
  }
}

api::ReportNodeReply NodeController::OnReport(const api::ReportNodeRequest& request) {
  const std::string& name = request.node_name();
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
    if (started_) {
      pools_ = PoolsOf(store_);
      DecideNode(name);
    }
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
  const auto pools = PoolsOf(store_);
  const auto node = store_.nodes.find(name);
  for (auto& [vendor, vendor_state] : state.vendors) {
    auto* order = reply.add_orders();
    order->set_vendor(std::string(core::VendorName(vendor)));
    const core::Pool* pool =
        node == store_.nodes.end() ? nullptr : PoolFor(pools, vendor, node->second.node.labels);
    if (pool != nullptr) {
      order->set_serve_device_plugin(pool->bimetal_plugin);
      order->set_resource_name(pool->resource_name);
      order->set_observe(!pool->enforce);
    }
    if (vendor_state.decision && vendor_state.report) {
      if (!vendor_state.decision->open.empty()) {
        order->set_open_fingerprint(vendor_state.report->fingerprint);
      }
      for (const auto& device : vendor_state.decision->open) order->add_open_devices(device.value);
    }
    if (vendor_state.pending) order->set_expected_run(vendor_state.pending->uid);
    if (const auto pod = FindRunPod(name, vendor, vendor_state); pod && !pod->ended) {
      order->set_expected_run(pod->id);
    }
  }
  return reply;
}

core::admission::Policy NodeController::PolicyFor(const core::Pool* pool) const {
  core::admission::Policy policy;
  policy.stale_after = options_.stale_after;
  if (pool == nullptr) return policy;
  policy.enforce = pool->enforce;
  const auto profile = store_.profiles.find(pool->profile);
  if (profile == store_.profiles.end()) return policy;
  const auto& spec = profile->second.spec();
  if (const auto expires = ParseDuration(spec.expires_after()); expires)
    policy.expires_after = *expires;
  if (const auto timeout = ParseDuration(spec.timeout()); timeout && timeout->v > 0) {
    policy.run_timeout = *timeout;
  }
  policy.retries = spec.retries();
  policy.required_checks = {spec.checks().begin(), spec.checks().end()};
  return policy;
}

std::optional<core::admission::RunPod> NodeController::FindRunPod(const std::string& node,
                                                                  Vendor vendor,
                                                                  VendorState& state) {
  const PodRecord* newest = nullptr;
  std::vector<const PodRecord*> older;
  const ObjectKey first{options_.name_space, ""};
  for (auto it = store_.pods.lower_bound(first);
       it != store_.pods.end() && it->first.first == options_.name_space; ++it) {
    const PodRecord& pod = it->second;
    if (pod.validates != core::VendorName(vendor) || pod.holds.node.value != node || pod.deleting)
      continue;
    if (newest == nullptr ||
        std::tie(newest->created, newest->holds.uid) < std::tie(pod.created, pod.holds.uid)) {
      if (newest != nullptr) older.push_back(newest);
      newest = &pod;
    } else {
      older.push_back(&pod);
    }
  }
  // The watch has caught up with what we created.
  if (state.pending && newest != nullptr && newest->holds.name == state.pending->name) {
    state.pending.reset();
  }
  if (state.pending && !state.pending->uid.empty()) {
    return core::admission::RunPod{state.pending->uid, state.pending->created, false, ""};
  }
  // Only the newest run's pod is kept, for its log.
  for (const auto* pod : older) {
    if (started_) DeletePod({pod->holds.name_space, pod->holds.name}, pod->holds.uid.value);
  }
  if (newest == nullptr) return std::nullopt;
  core::admission::RunPod out{newest->holds.uid.value, newest->created, newest->ended, ""};
  if (!newest->waiting_reason.empty())
    out.trouble = newest->waiting_reason + ": " + newest->waiting_message;
  if (newest->ended && !newest->end_reason.empty())
    out.trouble = newest->end_reason + ": " + newest->end_message;
  return out;
}

void NodeController::DecideVendor(const std::string& name, NodeState& state, Vendor vendor) {
  auto& vendor_state = state.vendors[vendor];
  const TimePoint now = clock_.Now();
  // After our own start an agent gets time to report before its silence means anything.
  if (!vendor_state.report && now < *started_ + options_.stale_after) {
    const TimePoint due = *started_ + options_.stale_after;
    if (!state.wake || due < *state.wake) state.wake = due;
    return;
  }
  const auto node = store_.nodes.find(name);
  const auto* object = FindGpuNode(store_, name);
  const core::Pool* pool =
      node == store_.nodes.end() ? nullptr : PoolFor(pools_, vendor, node->second.node.labels);
  vendor_state.no_pool = pool == nullptr;

  core::admission::Facts facts;
  facts.vendor = vendor;
  facts.node_exists = node != store_.nodes.end();
  facts.hold = object != nullptr && object->spec().hold();
  if (object != nullptr) facts.revalidate = object->spec().revalidate();
  facts.report = vendor_state.report;
  facts.run = vendor_state.run;
  facts.pod = FindRunPod(name, vendor, vendor_state);
  if (vendor_state.pending && vendor_state.pending->uid.empty()) {
    // The create is under way: as if the pod stood there, so that no second one is asked for.
    facts.pod = core::admission::RunPod{vendor_state.pending->name, vendor_state.pending->created,
                                        false, vendor_state.pending->trouble};
  }
  Decision decision = core::admission::Decide(facts, vendor_state.memory, PolicyFor(pool), now);

  if (vendor_state.run) {
    if (decision.memory.last_run != vendor_state.run->id) {
      state.unacknowledged.erase(vendor_state.run->id);
    } else if (options_.judged) {
      const Phase phase = decision.phase;
      options_.judged(vendor_state.level, vendor,
                      phase == Phase::kAdmitted      ? "pass"
                      : phase == Phase::kQuarantined ? "fail"
                                                     : "inconclusive");
    }
    vendor_state.run.reset();
  }
  vendor_state.memory = decision.memory;
  const bool open_changed = !vendor_state.decision ||
                            vendor_state.decision->open != decision.open ||
                            vendor_state.decision->shut != decision.shut;
  if (decision.wake && (!state.wake || *decision.wake < *state.wake)) state.wake = decision.wake;
  if (!decision.end_run.empty()) {
    for (const auto& [key, pod] : store_.pods) {
      if (pod.holds.uid.value == decision.end_run) DeletePod(key, decision.end_run);
    }
    vendor_state.pending.reset();
  }
  vendor_state.decision = std::move(decision);
  if (vendor_state.decision->start_run && pool != nullptr && !vendor_state.pending) {
    StartRun(name, vendor, state, *pool);
  }
  if (open_changed) changed_();
}

std::string NodeController::ImageFor(Vendor vendor) const {
  return vendor == Vendor::kNvidia ? options_.nvidia_image : options_.amd_image;
}

void NodeController::StartRun(const std::string& node, Vendor vendor, NodeState& state,
                              const core::Pool& pool) {
  auto& vendor_state = state.vendors[vendor];
  if (ImageFor(vendor).empty()) return;  // BuildStatus says so
  const auto& memory = vendor_state.memory;
  ValidationPodSpec spec;
  spec.name_space = options_.name_space;
  spec.node = node;
  spec.vendor = vendor;
  spec.image = ImageFor(vendor);
  spec.pull_policy = options_.pull_policy;
  spec.service_account = options_.service_account;
  spec.priority_class = options_.priority_class;
  spec.level = "L1";
  spec.fingerprint = vendor_state.report->fingerprint;
  spec.socket_dir = options_.socket_dir;
  if (state.inventory.simulated()) spec.machine_dir = options_.machine_dir;
  spec.tolerations = options_.tolerations;
  if (const auto profile = store_.profiles.find(pool.profile); profile != store_.profiles.end()) {
    const auto& p = profile->second.spec();
    if (!p.level().empty()) spec.level = p.level();
    spec.checks = {p.checks().begin(), p.checks().end()};
  }
  spec.timeout = PolicyFor(&pool).run_timeout;
  for (const auto& device : vendor_state.report->devices) spec.devices.push_back(device.id.value);
  spec.name =
      ValidationPodName(vendor, node,
                        spec.fingerprint + "|" + state.boot_id + "|" + memory.last_run + "|" +
                            std::to_string(memory.inconclusive_runs) + "|" + memory.revalidated);
  vendor_state.pending = PendingRun{spec.name, "", clock_.Now(), ""};

  Write write{"create", "pods", spec.name_space, spec.name, BuildValidationPod(spec), {}, {}};
  auto uid = std::make_shared<std::string>();
  write.run = [body = write.body, ns = spec.name_space, pod_name = spec.name,
               uid](kube::Client& client) -> Status {
    auto created = client.CreateRaw(kube::InfoOf<api::Pod>(), ns, body);
    api::Pod pod;
    if (created) {
      BIMETAL_TRY(kube::FromJson(*created, &pod));
    } else if (created.error().code == ErrorCode::kAlreadyExists) {
      BIMETAL_TRY_ASSIGN(pod, client.Get<api::Pod>(ns, pod_name));
    } else {
      return tl::unexpected<Error>(created.error());
    }
    *uid = pod.metadata().uid();
    return {};
  };
  write.done = [this, node, vendor, uid](const Status& status) {
    auto& target = states_[node].vendors[vendor];
    if (!target.pending) return;
    if (status) {
      target.pending->uid = *uid;
    } else {
      // Stays pending with its trouble until the run's time is over, then counts as Inconclusive.
      target.pending->trouble = status.error().message;
      Log(LogLevel::kWarning, "validation pod could not be created",
          {{"node", node}, {"error", status.error().message}});
    }
    Touch(node);
  };
  writes_.Submit(std::move(write));
  Log(LogLevel::kInfo, "validation run started",
      {{"node", node}, {"vendor", core::VendorName(vendor)}, {"pod", spec.name}});
}

void NodeController::DeletePod(const ObjectKey& key, const std::string& uid) {
  if (!deleting_.insert(uid).second) return;
  Write write{"delete", "pods", key.first, key.second, "", {}, {}};
  write.run = [key, uid](kube::Client& client) -> Status {
    auto status = client.Delete<api::Pod>(key.first, key.second,
                                          {.uid = uid, .grace_seconds = {}, .propagation = ""});
    if (!status && (status.error().code == ErrorCode::kNotFound ||
                    status.error().code == ErrorCode::kConflict)) {
      return {};
    }
    return status;
  };
  write.done = [this, uid](const Status& status) {
    if (!status) deleting_.erase(uid);  // so that it is asked for again
  };
  writes_.Submit(std::move(write));
}

void NodeController::DecideNode(const std::string& name) {
  if (!store_.nodes.contains(name) && !store_.gpu_nodes.contains(name)) {
    states_.erase(name);  // gone, and its GPUNode was deleted by somebody: nothing is left to say
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
}

void NodeController::RetrySoon(const std::string& name) {
  auto& state = states_[name];
  const TimePoint due = clock_.Now() + kRetry;
  if (!state.wake || due < *state.wake) state.wake = due;
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
}

std::optional<TimePoint> NodeController::NextWake() const {
  std::optional<TimePoint> next;
  for (const auto& [name, state] : states_) {
    if (state.wake && (!next || *state.wake < *next)) next = state.wake;
  }
  return next;
}

api::GPUNodeStatus NodeController::BuildStatus(const std::string& name,
                                               const NodeState& state) const {
  std::vector<VendorView> vendors;
  for (const auto& [vendor, vendor_state] : state.vendors) {
    VendorView view;
    view.vendor = vendor;
    view.stack = &vendor_state.stack;
    view.memory = &vendor_state.memory;
    view.decision = vendor_state.decision ? &*vendor_state.decision : nullptr;
    view.verdicts = &vendor_state.verdicts;
    if (vendor_state.pending) view.run = vendor_state.pending->name;
    if (vendor_state.no_pool) {
      view.remark = "no GPUPool of this vendor selects the node; create one or label the node";
    } else if (ImageFor(vendor).empty()) {
      view.remark =
          "no validation image is configured for this vendor; set image.validation in the chart's "
          "values";
    }
    const auto node = store_.nodes.find(name);
    const core::Pool* pool =
        node == store_.nodes.end() ? nullptr : PoolFor(pools_, vendor, node->second.node.labels);
    if (pool != nullptr) view.pool = pool->name.value;
    vendors.push_back(std::move(view));
  }
  const auto* object = FindGpuNode(store_, name);
  const std::int64_t generation = object == nullptr ? 0 : object->metadata().generation();
  return MakeNodeStatus(state.written, state.inventory, state.boot_id, state.last_report, vendors,
                        generation, clock_.Now());
}

void NodeController::CreateGpuNode(const std::string& name, NodeState& state) {
  if (state.write_in_flight) return;
  state.write_in_flight = true;
  api::GPUNode object;
  object.mutable_metadata()->set_name(name);
  Write write{"create", "gpunodes", "", name, kube::ToJson(object), {}, {}};
  auto created = std::make_shared<api::GPUNode>();
  write.run = [object, created](kube::Client& client) -> Status {
    auto result = client.Create(object);
    if (!result && result.error().code == ErrorCode::kAlreadyExists) {
      result = client.Get<api::GPUNode>("", object.metadata().name());
    }
    BIMETAL_TRY_ASSIGN(*created, std::move(result));
    return {};
  };
  write.done = [this, name, created](const Status& status) {
    auto& target = states_[name];
    target.write_in_flight = false;
    if (!status) {
      Log(LogLevel::kWarning, "gpunode could not be created",
          {{"node", name}, {"error", status.error().message}});
      RetrySoon(name);
      return;
    }
    // What an earlier object of this name said is not what this one says.
    target.written = created->status();
    store_.gpu_nodes.try_emplace(name, *created);
    Touch(name);
  };
  writes_.Submit(std::move(write));
}

void NodeController::WriteStatus(const std::string& name, NodeState& state) {
  if (state.write_in_flight) return;
  const auto* object = FindGpuNode(store_, name);
  api::GPUNodeStatus status = BuildStatus(name, state);
  if (SameNodeStatus(status, state.written)) {
    state.unacknowledged.clear();
    return;
  }
  status.set_last_report_time(state.last_report ? FormatTime(*state.last_report) : "");
  state.write_in_flight = true;
  api::GPUNode target;
  *target.mutable_metadata() = object->metadata();
  *target.mutable_status() = status;
  std::set<std::string> judged = state.unacknowledged;
  Write write{"patch", "gpunodes/status", "", name, kube::ToJson(status), {}, {}};
  write.run = [target](kube::Client& client) { return client.ReplaceStatus(target); };
  write.done = [this, name, status, judged](const Status& result) {
    auto& target_state = states_[name];
    target_state.write_in_flight = false;
    if (result) {
      target_state.written = status;
      for (const auto& run : judged) target_state.unacknowledged.erase(run);
      if (target_state.last_phase != status.phase()) {
        RecordEvent(name, status);
        Log(LogLevel::kInfo, "node phase changed",
            {{"node", name},
             {"from", target_state.last_phase},
             {"to", status.phase()},
             {"reason", status.reason()}});
        target_state.last_phase = status.phase();
      }
    } else {
      Log(LogLevel::kWarning, "gpunode status could not be written",
          {{"node", name}, {"error", result.error().message}});
      RetrySoon(name);
      return;
    }
    Touch(name);
  };
  writes_.Submit(std::move(write));
}

void NodeController::PatchNode(const std::string& name, NodeState& state) {
  const auto it = store_.nodes.find(name);
  if (it == store_.nodes.end() || state.patch_in_flight) return;
  // The taint shuts the whole node, so it goes on while no vendor of it is open; a vendor that
  // failed beside an open one is withheld by device.
  bool shut = true;
  std::map<std::string, std::string> labels;
  for (const auto& [vendor, vendor_state] : state.vendors) {
    if (!vendor_state.decision) return;  // not known yet: leave the node as it is
    if (!vendor_state.decision->shut) shut = false;
    labels["bimetal.dev/" + std::string(core::VendorName(vendor))] =
        std::string(core::admission::PhaseName(vendor_state.decision->phase));
  }
  const std::string patch = NodePatch(it->second, shut, labels);
  if (patch.empty()) return;
  state.patch_in_flight = true;
  Write write{"patch", "nodes", "", name, patch, {}, {}};
  auto after = std::make_shared<NodeRecord>();
  write.run = [name, patch, after](kube::Client& client) -> Status {
    BIMETAL_TRY_ASSIGN(const api::Node node,
                       client.Patch<api::Node>("", name, patch, kube::PatchType::kMerge));
    *after = MakeNodeRecord(node);
    return {};
  };
  write.done = [this, name, after, version = it->second.resource_version](const Status& status) {
    states_[name].patch_in_flight = false;
    if (!status) {
      // A conflict means that the node changed: the watch brings the new one.
      if (status.error().code != ErrorCode::kConflict) {
        Log(LogLevel::kWarning, "node could not be patched",
            {{"node", name}, {"error", status.error().message}});
      }
      RetrySoon(name);
      return;
    }
    const auto target = store_.nodes.find(name);
    // Not over what the watch has brought meanwhile.
    if (target != store_.nodes.end() && target->second.resource_version == version) {
      target->second = *after;
      changed_();
    }
    Touch(name);
  };
  writes_.Submit(std::move(write));
}

void NodeController::RecordEvent(const std::string& node, const api::GPUNodeStatus& status) {
  const TimePoint now = clock_.Now();
  api::Event event;
  event.mutable_metadata()->set_namespace_(
      "default");  // where Kubernetes keeps events of cluster objects
  event.mutable_metadata()->set_name(Cut(node, 200) + ".bimetal." + std::to_string(now.ms));
  auto* object = event.mutable_involved_object();
  object->set_api_version("v1");
  object->set_kind("Node");
  object->set_name(node);
  object->set_uid(node);  // as the kubelet does, so that `kubectl describe node` shows it
  event.set_reason(status.reason());
  event.set_message(Cut("GPU devices are " + status.phase() + ": " + status.message(), 1000));
  event.set_type(status.phase() == "Quarantined" || status.phase() == "Lost" ? "Warning"
                                                                             : "Normal");
  event.set_first_timestamp(FormatTime(now));
  event.set_last_timestamp(FormatTime(now));
  event.set_count(1);
  event.mutable_source()->set_component("bimetal-operator");
  event.set_reporting_component("bimetal-operator");
  Write write{"create", "events", "default", event.metadata().name(), kube::ToJson(event), {}, {}};
  write.run = [event](kube::Client& client) -> Status {
    BIMETAL_TRY(client.Create(event));
    return {};
  };
  writes_.Submit(std::move(write));
}

std::map<Vendor, core::NodeDevices> NodeController::DevicesOf(const std::string& node) const {
  std::map<Vendor, core::NodeDevices> out;
  const auto it = states_.find(node);
  const auto record = store_.nodes.find(node);
  if (it == states_.end() || record == store_.nodes.end()) return out;
  for (const auto& [vendor, vendor_state] : it->second.vendors) {
    const core::Pool* pool = PoolFor(pools_, vendor, record->second.node.labels);
    core::NodeDevices devices;
    if (pool != nullptr) {
      devices.pool = pool->name;
      const auto offered = record->second.offered.find(pool->resource_name);
      if (offered != record->second.offered.end()) devices.offered = offered->second;
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

}  // namespace bimetal::op
