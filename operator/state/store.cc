#include "operator/state/store.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/quantity.h"
#include "core/model/demand.h"
#include "core/model/job.h"
#include "operator/state/time_of.h"

namespace bimetal::op {
namespace {

// What a live pod asks of its node. The API server has checked its quantities; should one be
// unreadable after all, the pod counts as the largest, so that nothing is placed beside it on a
// guess.
core::PodDemand DemandOf(const api::PodSpec& spec) {
  auto demand =
      core::DemandOfPod(spec.containers(), spec.init_containers(), spec.overhead(), "spec");
  if (demand) return std::move(*demand);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return core::PodDemand{core::Resources{kMost, kMost, 1}, {}};
}

// The kubelet or a controller ended the pod by no fault of its program.
bool IsDisruption(const std::string& reason) {
  static constexpr std::array kReasons = {
      "Evicted",    "NodeLost",     "Shutdown",   "NodeShutdown",
      "Terminated", "NodeAffinity", "Preempting", "UnexpectedAdmissionError"};
  // "OutOfcpu", "OutOfnvidia.com/gpu": the kubelet's admission. (A container is "OOMKilled".)
  return reason.rfind("OutOf", 0) == 0 ||
         std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

std::string LabelOf(const api::ObjectMeta& meta, const char* key) {
  const auto it = meta.labels().find(key);
  return it == meta.labels().end() ? std::string() : it->second;
}

int NumberOf(const std::string& text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > 100'000'000) return -1;
    value = value * 10 + (c - '0');
  }
  return text.empty() ? -1 : value;
}

// A container is waited for that has not begun, and no init container is at work.
bool IsCreating(const api::PodStatus& status) {
  for (const auto& container : status.init_container_statuses()) {
    if (container.state().waiting().reason() == "ContainerCreating") return true;
    if (!container.state().has_terminated() && !container.ready()) return false;
  }
  return std::any_of(status.container_statuses().begin(), status.container_statuses().end(),
                     [](const auto& container) {
                       const auto& reason = container.state().waiting().reason();
                       return reason == "ContainerCreating" || reason == "PodInitializing";
                     });
}

std::vector<std::int64_t> ReadGang(const std::string& text) {
  std::vector<std::int64_t> out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const int number = NumberOf(text.substr(begin, end - begin));
    if (number < 1 || number > core::kMaxPodsOfJob) return {};
    out.push_back(number);
    begin = end + 1;
  }
  return out;
}

void ReadContainers(const api::PodStatus& status, PodRecord& out) {
  bool all_running = status.container_statuses_size() > 0;
  out.creating = IsCreating(status);
  for (const auto* list : {&status.init_container_statuses(), &status.container_statuses()}) {
    for (const auto& container : *list) {
      const auto& state = container.state();
      if (state.has_waiting() && out.waiting_reason.empty() && !state.waiting().reason().empty() &&
          state.waiting().reason() != "PodInitializing" &&
          state.waiting().reason() != "ContainerCreating") {
        out.waiting_reason = state.waiting().reason();
        out.waiting_message = state.waiting().message();
      }
      if (state.has_terminated()) {
        const auto& end = state.terminated();
        if (const auto at = TimeOf(end.finished_at());
            at && (!out.finished_at || *out.finished_at < *at)) {
          out.finished_at = at;
        }
        if (end.exit_code() != 0 && out.exit_code == 0) {
          out.exit_code = end.exit_code();
          out.end_reason = end.reason();
          out.end_message = end.message();
        }
      }
    }
  }
  for (const auto& container : status.container_statuses()) {
    if (!container.state().has_running() && !container.state().has_terminated())
      all_running = false;
  }
  out.running = all_running;
}

void Unindex(std::map<std::string, std::set<ObjectKey>>& index, const std::string& entry,
             const ObjectKey& key) {
  const auto it = index.find(entry);
  if (it == index.end()) return;
  it->second.erase(key);
  if (it->second.empty()) index.erase(it);
}

std::set<std::string> SplitCommas(const std::string& text) {
  std::set<std::string> out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) out.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::map<std::string, core::Vendor> Store::DefaultResources() {
  std::map<std::string, core::Vendor> out;
  for (const auto vendor : core::kVendors)
    out[std::string(core::DefaultResourceName(vendor))] = vendor;
  return out;
}

void Store::RemovePod(const ObjectKey& key) {
  const auto it = pods.find(key);
  if (it == pods.end()) return;
  const PodRecord& pod = it->second;
  if (!pod.service.empty()) {
    Unindex(pods_by_service, pod.service, key);
  } else if (pod.holds.of_job) {
    Unindex(pods_by_job, pod.holds.of_job->job.value, key);
  }
  if (!pod.validates.empty()) Unindex(runs_by_node, pod.holds.node.value, key);
  pods.erase(it);
}

void Store::PutPod(PodRecord pod) {
  const ObjectKey key{pod.holds.name_space, pod.holds.name};
  RemovePod(key);
  if (!pod.service.empty()) {
    pods_by_service[pod.service].insert(key);
  } else if (pod.holds.of_job) {
    pods_by_job[pod.holds.of_job->job.value].insert(key);
  }
  if (!pod.validates.empty()) runs_by_node[pod.holds.node.value].insert(key);
  pods.emplace(key, std::move(pod));
}

Uid ReplicaUid(const std::string& service_uid, int index) {
  return Uid{service_uid + "/" + std::to_string(index)};
}

void CountDevices(PodRecord& pod, const std::map<std::string, core::Vendor>& resources) {
  pod.holds.devices.clear();
  for (const auto& [name, count] : pod.extended) {
    const auto vendor = resources.find(name);
    if (vendor == resources.end() || count <= 0) continue;
    pod.holds.devices[vendor->second].v +=
        std::min<std::int64_t>(count, 1'000'000) * kWholeDevice.v;
  }
}

PodRecord MakePodRecord(const api::Pod& pod, const std::map<std::string, core::Vendor>& resources) {
  PodRecord out;
  const auto& meta = pod.metadata();
  out.holds.uid = Uid{meta.uid()};
  out.holds.name_space = meta.namespace_();
  out.holds.name = meta.name();
  out.bound = !pod.spec().node_name().empty();
  out.holds.node = NodeName{pod.spec().node_name()};
  out.queued = ReadQueuedPod(pod);
  if (!out.bound) {
    // Pinned by us but not bound yet: it already holds its place.
    const bool admitted = out.queued && !out.queued->gated && !out.queued->admitted_to.empty();
    const auto pinned = meta.annotations().find(kPinnedNodeAnnotation);
    if (pinned != meta.annotations().end() &&
        (admitted || !LabelOf(meta, kJobUidLabel).empty() ||
         !LabelOf(meta, kServiceUidLabel).empty() || !LabelOf(meta, kValidatesLabel).empty())) {
      out.holds.node = NodeName{pinned->second};
    }
  }
  core::PodDemand demand = DemandOf(pod.spec());
  out.holds.requests = demand.requests;
  out.extended = std::move(demand.extended);
  CountDevices(out, resources);
  const int attempt = NumberOf(LabelOf(meta, kAttemptLabel));
  const int index = NumberOf(LabelOf(meta, kIndexLabel));
  if (const auto uid = LabelOf(meta, kJobUidLabel); !uid.empty() && attempt >= 0 && index >= 0) {
    out.holds.of_job = core::PodOfJob{Uid{uid}, attempt, LabelOf(meta, kRoleLabel), index};
  }
  if (const auto uid = LabelOf(meta, kServiceUidLabel);
      !uid.empty() && index >= 0 && !out.holds.of_job) {
    out.service = uid;
    out.revision = LabelOf(meta, kRevisionLabel);
    out.holds.of_job = core::PodOfJob{ReplicaUid(uid, index), 0, "replica", index};
  }
  out.job = LabelOf(meta, kJobNameLabel);
  if (const auto gang = meta.annotations().find(kGangAnnotation);
      out.holds.of_job && gang != meta.annotations().end()) {
    out.gang = ReadGang(gang->second);
  }
  out.variant = LabelOf(meta, kVariantLabel);
  out.validates = LabelOf(meta, kValidatesLabel);
  out.run = LabelOf(meta, kRunLabel);
  if (!out.validates.empty()) {
    const auto devices = meta.annotations().find(kRunDevicesAnnotation);
    if (devices != meta.annotations().end()) out.run_devices = SplitCommas(devices->second);
  }
  out.deleting = !meta.deletion_timestamp().empty();
  out.created = TimeOf(meta.creation_timestamp()).value_or(TimePoint{});
  const auto& status = pod.status();
  out.succeeded = status.phase() == "Succeeded";
  out.ended = out.succeeded || status.phase() == "Failed";
  for (const auto& condition : status.conditions()) {
    const bool yes = condition.status() == "True";
    if (condition.type() == "Ready") out.ready = yes;
    if (condition.type() == "PodScheduled") {
      if (yes) out.scheduled_at = TimeOf(condition.last_transition_time());
      if (condition.status() == "False" && condition.reason() == "Unschedulable") {
        out.waiting_reason = "Unschedulable";
        out.waiting_message = condition.message();
      }
    }
    if (condition.type() == "DisruptionTarget" && yes) {
      out.disrupted = true;
      out.end_message = condition.message();
    }
  }
  ReadContainers(status, out);
  if (status.phase() == "Failed" && !status.reason().empty()) {
    out.end_reason = status.reason();
    out.end_message = status.message();
    if (IsDisruption(status.reason())) out.disrupted = true;
  }
  return out;
}

NodeRecord MakeNodeRecord(const api::Node& node) {
  NodeRecord out;
  out.uid = node.metadata().uid();
  out.resource_version = node.metadata().resource_version();
  out.node.name = NodeName{node.metadata().name()};
  out.node.labels = {node.metadata().labels().begin(), node.metadata().labels().end()};
  out.taints = {node.spec().taints().begin(), node.spec().taints().end()};
  for (const auto& taint : node.spec().taints()) {
    out.node.taints.push_back(core::Taint{taint.key(), taint.value(), taint.effect()});
  }
  out.node.cordoned = node.spec().unschedulable();
  out.boot_id = node.status().node_info().boot_id();
  out.kernel_version = node.status().node_info().kernel_version();
  for (const auto& condition : node.status().conditions()) {
    if (condition.type() != "Ready") continue;
    out.node.ready = condition.status() == "True";
    if (!out.node.ready) out.not_ready_since = TimeOf(condition.last_transition_time());
  }
  for (const auto& [name, text] : node.status().allocatable()) {
    // What cannot be read offers nothing.
    const auto value = name == "cpu" ? ParseQuantityMilli(text) : ParseQuantity(text);
    if (!value) continue;
    if (name == "cpu")
      out.node.allocatable.cpu_milli = *value;
    else if (name == "memory")
      out.node.allocatable.memory_bytes = *value;
    else if (name == "pods")
      out.node.allocatable.pods = *value;
    else if (name.find('/') != std::string::npos)
      out.offered[name] = *value;
  }
  return out;
}

bool SameForDecisions(const NodeRecord& a, const NodeRecord& b) {
  return a.uid == b.uid && a.node.labels == b.node.labels && a.node.taints == b.node.taints &&
         a.node.ready == b.node.ready && a.node.cordoned == b.node.cordoned &&
         a.node.allocatable == b.node.allocatable && a.offered == b.offered &&
         a.boot_id == b.boot_id;
}

std::vector<core::Pool> PoolsOf(const Store& store) {
  std::vector<core::Pool> out;
  for (const auto& [name, pool] : store.pools) {
    const auto vendor = core::ParseVendor(pool.spec().vendor());
    if (!vendor) continue;
    core::Pool p;
    p.name = PoolName{name};
    p.vendor = *vendor;
    p.node_selector = {pool.spec().node_selector().begin(), pool.spec().node_selector().end()};
    p.resource_name = pool.spec().resource_name().empty()
                          ? std::string(core::DefaultResourceName(*vendor))
                          : pool.spec().resource_name();
    p.enforce = pool.spec().gate() != "Observe";
    p.bimetal_plugin = pool.spec().device_plugin() == "Bimetal";
    p.price_book = pool.spec().price_book_name();
    p.profile = pool.spec().validation_profile_name();
    for (const auto& one : pool.spec().device_classes()) {
      const bool known = std::any_of(p.device_classes.begin(), p.device_classes.end(),
                                     [&](const auto& c) { return c.name == one.name(); });
      if (known) continue;
      p.device_classes.push_back({one.name(), {one.models().begin(), one.models().end()}});
    }
    for (const auto& key : pool.spec().topology_keys()) {
      auto& keys = p.topology_keys;
      if (key.empty() || key == core::kNodeLevel) continue;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    out.push_back(std::move(p));
  }
  return out;
}

namespace {

// A duration that the schema lets pass and that cannot be read counts as left out.
std::optional<Millis> DurationOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto parsed = ParseDuration(text);
  if (!parsed) return std::nullopt;
  return *parsed;
}

void ReadQuotas(const api::GPUQueueSpec& spec, core::Queue* queue) {
  for (const auto& quota : spec.quotas()) {
    core::QuotaLine line;
    line.device_class = quota.device_class();
    line.guaranteed = quota.guaranteed();
    if (quota.has_limit()) line.limit = quota.limit();
    if (quota.has_lending_limit()) line.lending_limit = quota.lending_limit();
    queue->quotas.push_back(std::move(line));
  }
  if (spec.has_total_limit()) queue->total_limit = spec.total_limit();
  if (spec.has_max_running_jobs()) queue->max_running_jobs = spec.max_running_jobs();
  if (spec.per_job().has_max_devices()) queue->max_devices_per_job = spec.per_job().max_devices();
  queue->max_duration_per_job = DurationOf(spec.per_job().max_duration());
}

void ReadPreemption(const api::QueuePreemption& from, core::QueuePreemption* to) {
  if (from.within_queue() == "LowerPriority") to->within_queue = core::WithinQueue::kLowerPriority;
  if (from.reclaim() == "LowerPriority") to->reclaim = core::Reclaim::kLowerPriority;
  if (from.reclaim() == "Any") to->reclaim = core::Reclaim::kAny;
  to->min_runtime = DurationOf(from.min_runtime()).value_or(Millis{});
  if (from.has_max_evictions_per_hour()) {
    to->max_evictions_per_hour = from.max_evictions_per_hour();
  }
}

}  // namespace

std::vector<core::Queue> QueuesOf(const Store& store) {
  std::vector<core::Queue> out;
  for (const auto& [name, queue] : store.queues) {
    const auto& spec = queue.spec();
    core::Queue q;
    q.name = QueueName{name};
    q.parent = QueueName{spec.parent_name()};
    q.namespace_selector = {spec.namespace_selector().match_labels().begin(),
                            spec.namespace_selector().match_labels().end()};
    ReadQuotas(spec, &q);
    ReadPreemption(spec.preemption(), &q.preemption);
    if (spec.order() == "Strict") q.order = core::QueueOrder::kStrict;
    if (spec.order() == "BestEffort") q.order = core::QueueOrder::kBestEffort;
    q.starvation_bound =
        DurationOf(spec.starvation_bound()).value_or(core::kDefaultStarvationBound);
    if (spec.has_fair_share()) {
      q.fair_share = core::FairShare{
          .weight = spec.fair_share().weight(),
          .half_life = DurationOf(spec.fair_share().half_life()).value_or(Millis{})};
    }
    if (spec.stop_policy() == "Hold") q.stop = core::StopPolicy::kHold;
    if (spec.stop_policy() == "HoldAndDrain") q.stop = core::StopPolicy::kHoldAndDrain;
    out.push_back(std::move(q));
  }
  return out;
}

const core::Pool* PoolFor(const std::vector<core::Pool>& pools, core::Vendor vendor,
                          const std::map<std::string, std::string>& node_labels) {
  for (const auto& pool : pools) {
    if (pool.vendor != vendor) continue;
    const bool selected =
        std::all_of(pool.node_selector.begin(), pool.node_selector.end(), [&](const auto& want) {
          const auto it = node_labels.find(want.first);
          return it != node_labels.end() && it->second == want.second;
        });
    if (selected) return &pool;
  }
  return nullptr;
}

}  // namespace bimetal::op
