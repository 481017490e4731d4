// What becomes of decisions: the GPUNode's status, taint and labels of the Node, Events.
#include <algorithm>

#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "operator/controllers/node_events.h"
#include "operator/controllers/node_status.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/status_write.h"

namespace bimetal::op {
namespace {

// Programs name capabilities; what cannot be part of a label's key is not published.
bool IsLabelName(const std::string& name) {
  const auto outer = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 63 && outer(name.front()) && outer(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return outer(c) || c == '-' || c == '_' || c == '.'; });
}

std::string KeyOf(const api::Finding& finding) {
  return finding.code() + "|" + finding.device() + "|" + finding.event();
}

}  // namespace

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
    view.rates = &vendor_state.rates;
    if (vendor_state.pending) view.run = vendor_state.pending->name;
    if (vendor_state.no_pool) {
      view.remark = "no GPUPool of this vendor selects the node; create one or label the node";
    } else if (ImageFor(vendor).empty()) {
      view.remark =
          "no validation image is configured for this vendor; set image.validation in the chart's "
          "values";
    }
    if (const core::Pool* pool = PoolOf(name, vendor); pool != nullptr)
      view.pool = pool->name.value;
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
  Write write = StatusWrite(target);
  write.done = [this, name, status, judged](const Status& result) {
    auto& target_state = states_[name];
    target_state.write_in_flight = false;
    if (result) {
      target_state.written = status;
      for (const auto& run : judged) target_state.unacknowledged.erase(run);
      if (target_state.last_phase != status.phase()) {
        SendEvent(TransitionEvent(name, status, clock_.Now()));
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
  std::optional<std::set<std::string>> capabilities;  // of every vendor with open devices
  for (const auto& [vendor, vendor_state] : state.vendors) {
    if (!vendor_state.decision) return;  // not known yet: leave the node as it is
    if (!vendor_state.decision->shut) shut = false;
    if (!vendor_state.decision->open.empty()) {
      std::set<std::string> both;
      for (const auto& capability : vendor_state.decision->capabilities) {
        if (!capabilities || capabilities->contains(capability)) both.insert(capability);
      }
      capabilities = std::move(both);
    }
    labels["bimetal.dev/" + std::string(core::VendorName(vendor))] =
        std::string(core::admission::PhaseName(vendor_state.decision->phase));
  }
  for (const auto& capability : capabilities.value_or(std::set<std::string>{})) {
    if (IsLabelName(capability)) labels[kCapabilityLabelPrefix + capability] = "validated";
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

void NodeController::TellFindings(const std::string& name, NodeState& state) {
  std::set<std::string> present;
  for (const auto& finding : state.inventory.findings()) {
    if (finding.severity() == "Info") continue;
    const std::string key = KeyOf(finding);
    present.insert(key);
    if (state.told.contains(key)) continue;
    SendEvent(FindingEvent(name, state.boot_id, finding, key, clock_.Now()));
  }
  state.told = std::move(present);
}

void NodeController::SendEvent(const api::Event& event) { writes_.Submit(CreateEvent(event)); }

}  // namespace bimetal::op
