// Pods that hold a device when a finding closes it: told, and evicted where the profile says so.
#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/node_events.h"
#include "operator/controllers/nodes.h"

namespace bimetal::op {
namespace {

constexpr char kSuspect[] = "NodeSuspect";
constexpr std::size_t kMostFaulted = 1024;

// The pod that an agent names as holder of a device of `node`; nullptr where there is none that
// lives. An agent has no say about the pods of other nodes.
const PodRecord* FindHolder(const Store& store, const std::string& node,
                            const std::string& holder) {
  const std::size_t slash = holder.find('/');
  if (slash == std::string::npos) return nullptr;
  const auto it = store.pods.find({holder.substr(0, slash), holder.substr(slash + 1)});
  if (it == store.pods.end()) return nullptr;
  const PodRecord& pod = it->second;
  const bool here = pod.bound && pod.holds.node.value == node;
  return here && !pod.ended && pod.validates.empty() ? &pod : nullptr;
}

}  // namespace

void NodeController::TellHolders(const std::string& name, NodeState& state) {
  std::map<DeviceId, std::set<std::string>> still_closed;
  for (const auto& device : state.inventory.devices()) {
    const auto vendor = core::ParseVendor(device.vendor());
    if (!vendor) continue;
    const auto& vendor_state = state.vendors[*vendor];
    const auto record = vendor_state.memory.records.find(DeviceId{device.id()});
    if (record == vendor_state.memory.records.end() || record->second.cordoned.empty()) continue;
    TellHolder(name, state, vendor_state, device);
    still_closed[record->first] = state.told_holders[record->first];
  }
  state.told_holders = std::move(still_closed);
}

void NodeController::TellHolder(const std::string& name, NodeState& state,
                                const VendorState& vendor_state, const api::Device& device) {
  const PodRecord* pod = FindHolder(store_, name, device.holder());
  if (pod == nullptr) return;
  const auto& record = vendor_state.memory.records.at(DeviceId{device.id()});
  // The failures of other jobs are no fault of this one's device.
  if (record.cordoned.starts_with(kSuspect)) return;
  NoteFault(pod->holds.uid, "device " + device.id() + ": " + record.cordoned);
  const core::Pool* pool = PoolOf(name, *core::ParseVendor(device.vendor()));
  const api::ValidationProfileSpec* profile = ProfileOf(pool);
  // Under Observe the device stays open: a gang that starts again could come back to it for ever.
  const bool evict =
      pod->holds.of_job && profile != nullptr && profile->on_fault() == "Evict" && pool->enforce;
  std::string follows = "it is left alone";
  if (evict) {
    follows = "it is evicted (onFault: Evict) and the gang starts again";
  } else if (pod->holds.of_job) {
    follows = "it goes on, and the job's own retry rules decide (onFault: Nothing)";
  }
  // A pass, which opens the device, has a new time.
  const std::string since =
      state.boot_id + "|" + (record.passed_at ? std::to_string(record.passed_at->ms) : "");
  const api::Event event =
      DeviceFaultEvent(*pod, device.id(), record.cordoned, follows, since, clock_.Now());
  if (state.told_holders[DeviceId{device.id()}].insert(event.metadata().name()).second) {
    SendEvent(event);
  }
  if (!evict || pod->deleting || deleting_.contains(pod->holds.uid.value)) return;
  Log(LogLevel::kWarning, "pod evicted from a device with a fault",
      {{"pod", device.holder()},
       {"node", name},
       {"device", device.id()},
       {"finding", record.cordoned}});
  DeletePod({pod->holds.name_space, pod->holds.name}, pod->holds.uid.value);
}

void NodeController::NoteFault(const Uid& pod, const std::string& fault) {
  if (!FaultUnder(pod).empty()) return;
  faulted_.emplace_back(pod, fault);
  if (faulted_.size() > kMostFaulted) faulted_.pop_front();
}

std::string NodeController::FaultUnder(const Uid& pod) const {
  const auto it = std::find_if(faulted_.begin(), faulted_.end(),
                               [&](const auto& entry) { return entry.first == pod; });
  return it == faulted_.end() ? "" : it->second;
}

void NodeController::Suspect(const std::string& node, core::Vendor vendor, const std::string& event,
                             const std::string& evidence) {
  if (!store_.nodes.contains(node)) return;
  NodeState& state = states_[node];
  Restore(node, state);
  state.vendors[vendor].suspicion =
      core::admission::Fault{.code = kSuspect,
                             .device = {},
                             .effect = core::admission::Effect::kCordon,
                             .event = event,
                             .evidence = evidence};
  Log(LogLevel::kWarning, "node is suspect", {{"node", node}, {"evidence", evidence}});
  Touch(node);
}

}  // namespace bimetal::op
