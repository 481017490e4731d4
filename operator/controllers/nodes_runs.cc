// Validation pods: found, made, deleted.
#include <algorithm>
#include <tuple>

#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "operator/controllers/node_facts.h"
#include "operator/controllers/nodes.h"
#include "operator/pods/validation_pod.h"

namespace bimetal::op {

using core::Vendor;
using core::admission::RunKind;
using core::admission::RunPod;

namespace {

RunPod RunPodOf(const PodRecord& pod) {
  RunPod out{.id = pod.holds.uid.value, .created = pod.created, .ended = pod.ended, .trouble = ""};
  if (!pod.waiting_reason.empty()) out.trouble = pod.waiting_reason + ": " + pod.waiting_message;
  if (pod.ended && !pod.end_reason.empty()) out.trouble = pod.end_reason + ": " + pod.end_message;
  if (pod.run == "path") out.kind = RunKind::kPath;
  for (const auto& device : pod.run_devices) out.devices.insert(DeviceId{device});
  return out;
}

// What is asked for, but never less than the profile demands.
std::string DeeperLevel(const std::string& profile, const std::string& asked) {
  return std::max(profile, asked);
}

}  // namespace

std::optional<RunPod> NodeController::FindRunPod(const std::string& node, Vendor vendor,
                                                 VendorState& state) {
  const PodRecord* newest = nullptr;
  std::vector<const PodRecord*> older;
  const auto keys = store_.runs_by_node.find(node);
  if (keys != store_.runs_by_node.end()) {
    for (const ObjectKey& key : keys->second) {
      const PodRecord& pod = store_.pods.at(key);
      if (key.first != options_.name_space || pod.validates != core::VendorName(vendor) ||
          pod.deleting) {
        continue;
      }
      if (newest == nullptr ||
          std::tie(newest->created, newest->holds.uid) < std::tie(pod.created, pod.holds.uid)) {
        if (newest != nullptr) older.push_back(newest);
        newest = &pod;
      } else {
        older.push_back(&pod);
      }
    }
  }
  // The watch has caught up with what we created.
  if (state.pending && newest != nullptr && newest->holds.name == state.pending->name) {
    state.pending.reset();
  }
  if (state.pending && !state.pending->uid.empty()) {
    return RunPod{.id = state.pending->uid,
                  .created = state.pending->created,
                  .ended = false,
                  .trouble = "",
                  .kind = state.pending->kind,
                  .devices = state.pending->devices};
  }
  // Only the newest run's pod is kept, for its log.
  for (const auto* pod : older) {
    if (started_) DeletePod({pod->holds.name_space, pod->holds.name}, pod->holds.uid.value);
  }
  if (newest == nullptr) return std::nullopt;
  return RunPodOf(*newest);
}

std::string NodeController::ImageFor(Vendor vendor) const {
  return vendor == Vendor::kNvidia ? options_.nvidia_image : options_.amd_image;
}

void NodeController::StartRun(const std::string& node, Vendor vendor, NodeState& state,
                              const core::Pool& pool) {
  auto& vendor_state = state.vendors[vendor];
  if (ImageFor(vendor).empty()) return;  // BuildStatus says so
  const auto& memory = vendor_state.memory;
  const auto& decision = *vendor_state.decision;
  const std::string word = RevalidateWord(FindGpuNode(store_, node));
  ValidationPodSpec spec;
  spec.name_space = options_.name_space;
  spec.node = node;
  spec.vendor = vendor;
  spec.image = ImageFor(vendor);
  spec.pull_policy = options_.pull_policy;
  spec.service_account = options_.service_account;
  spec.priority_class = options_.priority_class;
  spec.path = decision.run_kind == RunKind::kPath;
  spec.resource_name = pool.resource_name;
  spec.level = "L1";
  spec.fingerprint = vendor_state.report->fingerprint;
  spec.socket_dir = options_.socket_dir;
  if (state.inventory.simulated()) spec.machine_dir = options_.machine_dir;
  spec.tolerations = options_.tolerations;
  const api::ValidationProfileSpec* profile = ProfileOf(&pool);
  if (profile != nullptr) {
    if (!profile->level().empty()) spec.level = profile->level();
    spec.checks = {profile->checks().begin(), profile->checks().end()};
  }
  spec.level = DeeperLevel(spec.level, LevelIn(word));
  spec.timeout = PolicyOf(&pool, profile, options_.stale_after, word).run_timeout;
  PendingRun pending;
  pending.created = clock_.Now();
  pending.kind = decision.run_kind;
  pending.devices = {decision.run_devices.begin(), decision.run_devices.end()};
  for (const auto& device : decision.run_devices) spec.devices.push_back(device.value);
  const std::string cause = spec.fingerprint + "|" + state.boot_id + "|" + memory.last_run + "|" +
                            std::to_string(memory.inconclusive_runs) + "|" +
                            std::to_string(memory.path.failures) + "|" + memory.revalidated +
                            (spec.path ? "|path" : "");
  spec.name = pending.name = ValidationPodName(vendor, node, cause);
  vendor_state.pending = std::move(pending);
  CreateRunPod(node, vendor, spec.name_space, spec.name, BuildValidationPod(spec));
  Log(LogLevel::kInfo, "validation run started",
      {{"node", node},
       {"vendor", core::VendorName(vendor)},
       {"kind", spec.path ? "path" : "kernels"},
       {"devices", spec.devices.size()},
       {"pod", spec.name}});
}

void NodeController::CreateRunPod(const std::string& node, Vendor vendor,
                                  const std::string& name_space, const std::string& pod_name,
                                  const std::string& body) {
  Write write{"create", "pods", name_space, pod_name, body, {}, {}};
  auto uid = std::make_shared<std::string>();
  write.run = [body, name_space, pod_name, uid](kube::Client& client) -> Status {
    auto created = client.CreateRaw(kube::InfoOf<api::Pod>(), name_space, body);
    api::Pod pod;
    if (created) {
      BIMETAL_TRY(kube::FromJson(*created, &pod));
    } else if (created.error().code == ErrorCode::kAlreadyExists) {
      BIMETAL_TRY_ASSIGN(pod, client.Get<api::Pod>(name_space, pod_name));
    } else {
      return tl::unexpected<Error>(created.error());
    }
    *uid = pod.metadata().uid();
    return {};
  };
  write.done = [this, node, vendor, uid](const Status& status) {
    const auto state = states_.find(node);
    if (state == states_.end()) return;
    auto& target = state->second.vendors[vendor];
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
}

void NodeController::EndRun(const std::string& node, const std::string& uid) {
  const auto keys = store_.runs_by_node.find(node);
  if (keys == store_.runs_by_node.end()) return;
  for (const ObjectKey& key : keys->second) {
    if (store_.pods.at(key).holds.uid.value == uid) DeletePod(key, uid);
  }
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

}  // namespace bimetal::op
