#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "operator/controllers/gated_pods.h"
#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {

inline constexpr char kNvidia[] = "nvidia.com/gpu";
inline constexpr char kAmd[] = "amd.com/gpu";

// Says in a few words what a user's pod looks like; it waits behind our gate.
class PodMaker {
 public:
  explicit PodMaker(const std::string& name) {
    auto& meta = *pod_.mutable_metadata();
    meta.set_name(name);
    meta.set_namespace_("team");
    meta.set_uid("uid-" + name);
    meta.set_resource_version("1");
    Label(op::kQueueNameLabel, "default");
    pod_.mutable_spec()->add_containers()->set_name("main");
    pod_.mutable_spec()->add_scheduling_gates()->set_name(op::kQueueGate);
  }
  PodMaker& Devices(const std::string& resource, int count) {
    auto& limits =
        *pod_.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits();
    limits[resource] = std::to_string(count);
    return *this;
  }
  PodMaker& Label(const std::string& key, const std::string& value) {
    (*pod_.mutable_metadata()->mutable_labels())[key] = value;
    return *this;
  }
  PodMaker& NoLabel(const std::string& key) {
    pod_.mutable_metadata()->mutable_labels()->erase(key);
    return *this;
  }
  PodMaker& Annotation(const std::string& key, const std::string& value) {
    (*pod_.mutable_metadata()->mutable_annotations())[key] = value;
    return *this;
  }
  PodMaker& OwnedBy(const std::string& kind, const std::string& name) {
    auto* owner = pod_.mutable_metadata()->add_owner_references();
    owner->set_api_version(kind == "Job" ? "batch/v1" : "apps/v1");
    owner->set_kind(kind);
    owner->set_name(name);
    owner->set_uid("uid-of-" + name);
    owner->set_controller(true);
    return *this;
  }
  // A pod of a Job whose pods start together, as the chart's policy announces them.
  PodMaker& OfGang(const std::string& job, int size) {
    OwnedBy("Job", job);
    return Annotation(op::kPodGroupSizeAnnotation, std::to_string(size));
  }
  PodMaker& Ungated() {
    pod_.mutable_spec()->clear_scheduling_gates();
    return *this;
  }
  api::Pod& Raw() { return pod_; }
  operator api::Pod() const { return pod_; }

 private:
  api::Pod pod_;
};

// The operator around pods that others make; the test plays API server, kubelets and users.
struct GatedWorld {
  World world;
  int changes = 0;
  std::unique_ptr<op::GatedPodController> gated;
  std::unique_ptr<op::SchedulingCycle> cycle;
  std::map<std::string, api::Pod> pods;  // by name: as the API server has them

  GatedWorld() { Restart(); }

  // A new controller, which knows what stands on the pods and nothing else.
  void Restart() {
    gated = std::make_unique<op::GatedPodController>(world.clock, world.store, world.nodes,
                                                     world.writes, op::GatedPodOptions{},
                                                     [this] { ++changes; });
    cycle =
        std::make_unique<op::SchedulingCycle>(world.clock, world.store, world.nodes,
                                              std::vector<op::Claimant*>{&world.jobs, gated.get()});
    ForgetWrites();
    gated->Start();
  }

  void AdmitNodes(int nvidia_devices, int amd_devices) {
    world.nodes.Start();
    world.jobs.Start();
    if (nvidia_devices > 0) world.Admit("n1", "nvidia", nvidia_devices);
    if (amd_devices > 0) world.Admit("a1", "amd", amd_devices);
    ForgetWrites();
  }
  void ForgetWrites() {
    world.writes.writes.clear();
    applied = 0;
  }

  // What the watch shows of the pod.
  void Show(api::Pod pod) {
    if (pod.metadata().creation_timestamp().empty())
      pod.mutable_metadata()->set_creation_timestamp(FormatTime(world.clock.Now()));
    pods[pod.metadata().name()] = pod;
    const auto record = op::MakePodRecord(pod, world.store.resources);
    world.store.PutPod(record);
    gated->OnPod(record, false);
  }
  void Remove(const std::string& name) {
    const op::ObjectKey key{"team", name};
    const auto record = world.store.pods.at(key);
    world.store.RemovePod(key);
    pods.erase(name);
    gated->OnPod(record, true);
  }
  void Run(const std::string& name) {
    auto& pod = pods.at(name);
    const auto node = pod.metadata().annotations().find(op::kPinnedNodeAnnotation);
    pod.mutable_spec()->set_node_name(node == pod.metadata().annotations().end() ? "n1"
                                                                                 : node->second);
    pod.mutable_status()->set_phase("Running");
    Show(pod);
  }
  void End(const std::string& name, const std::string& phase) {
    pods.at(name).mutable_status()->set_phase(phase);
    Show(pods.at(name));
  }

  void Turn() {
    gated->Reconcile();
    cycle->Run();
    gated->Reconcile();
  }

  // The API server takes every patch of a pod that was sent since, and the watch shows it.
  void TakePatches() {
    for (; applied < world.writes.writes.size(); ++applied) {
      const auto write = world.writes.writes[applied];
      if (write.verb != "patch" || write.resource != "pods") continue;
      const auto it = pods.find(write.name);
      if (it == pods.end()) {
        write.done(Fail(ErrorCode::kNotFound, "no such pod"));
        continue;
      }
      const auto merged = kube::OverlayJson(kube::ToJson(it->second), write.body);
      ASSERT_TRUE(merged) << merged.error().message;
      api::Pod pod;
      ASSERT_TRUE(kube::FromJson(*merged, &pod)) << *merged;
      pod.mutable_metadata()->set_resource_version(std::to_string(++version));
      Show(pod);
      write.done({});
    }
  }

  // Names of the pods whose gate was asked to go since the writes were forgotten.
  std::vector<std::string> Opened() const {
    std::vector<std::string> out;
    for (const auto& write : world.writes.Of("patch", "pods")) {
      if (write.body.find("schedulingGates") != std::string::npos) out.push_back(write.name);
    }
    return out;
  }
  std::string Words(const std::string& pod) const {
    const auto& notes = pods.at(pod).metadata().annotations();
    const auto it = notes.find(op::kWaitingAnnotation);
    return it == notes.end() ? "" : it->second;
  }
  std::int64_t Used(const std::string& queue, core::Vendor vendor) const {
    auto counts = cycle->Queues()[queue];
    return counts.used[vendor];
  }

  std::size_t applied = 0;
  int version = 100;
};

}  // namespace bimetal::test
