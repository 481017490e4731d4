#pragma once

#include <string>

#include "kube/codec/codec.h"
#include "operator/controllers/cycle.h"
#include "operator/controllers/jobs.h"
#include "operator/controllers/nodes.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/recording_writes.h"

namespace bimetal::test {

// The controllers of the operator around a store, without a cluster: the test plays API server,
// agents and kubelets.
struct World {
  FakeClock clock;
  op::Store store;
  RecordingWrites writes;
  op::NodeController nodes;
  op::JobController jobs;
  op::SchedulingCycle cycle;

  World()
      : nodes(clock, store, writes, NodeOptions(), [] {}),
        jobs(clock, store, nodes, writes, op::JobOptions{"bimetal-job", {}, {}}, [] {}),
        cycle(clock, store, nodes, {&jobs}) {
    api::ValidationProfile quick;  // without the path, which has tests of its own
    quick.mutable_metadata()->set_name("quick");
    quick.mutable_spec()->set_retries(5);
    quick.mutable_spec()->set_path_check("Skip");
    store.profiles["quick"] = quick;
    AddPool("nvidia");
    AddPool("amd");
    api::GPUQueue queue;
    queue.mutable_metadata()->set_name("default");
    store.queues["default"] = queue;
    store.namespaces["team"] = {};
  }

  static op::NodeOptions NodeOptions() {
    op::NodeOptions options;
    options.name_space = "bimetal-system";
    options.nvidia_image = "validation:nvidia";
    options.amd_image = "validation:amd";
    options.machine_dir = "/var/lib/bimetal/machine";
    return options;
  }

  void AddPool(const std::string& vendor) {
    api::GPUPool pool;
    pool.mutable_metadata()->set_name(vendor);
    pool.mutable_spec()->set_vendor(vendor);
    pool.mutable_spec()->set_device_plugin("Bimetal");
    pool.mutable_spec()->set_price_book_name("book");
    pool.mutable_spec()->set_validation_profile_name("quick");
    store.pools[vendor] = pool;
  }

  void AddNode(const std::string& name, const std::string& vendor, int devices) {
    api::Node node;
    node.mutable_metadata()->set_name(name);
    node.mutable_metadata()->set_uid("uid-" + name);
    node.mutable_metadata()->set_resource_version("7");
    auto& allocatable = *node.mutable_status()->mutable_allocatable();
    allocatable["cpu"] = "64";
    allocatable["memory"] = "512Gi";
    allocatable["pods"] = "110";
    allocatable[vendor + ".com/gpu"] = std::to_string(devices);
    auto* ready = node.mutable_status()->add_conditions();
    ready->set_type("Ready");
    ready->set_status("True");
    store.nodes[name] = op::MakeNodeRecord(node);
  }

  api::ReportNodeRequest Report(const std::string& node, const std::string& vendor, int devices,
                                const std::string& fingerprint = "f1") {
    api::ReportNodeRequest request;
    request.set_node_name(node);
    request.set_boot_id("boot-1");
    request.set_seq(++seq);
    auto& inventory = *request.mutable_inventory();
    inventory.set_simulated(true);
    auto* stack = inventory.add_stacks();
    stack->set_vendor(vendor);
    stack->set_driver_version("1.0");
    stack->set_fingerprint(fingerprint);
    for (int i = 0; i < devices; ++i) {
      auto* device = inventory.add_devices();
      device->set_id(node + "-" + std::to_string(i));
      device->set_vendor(vendor);
      device->set_model(vendor == "nvidia" ? "H100" : "MI300X");
      device->set_memory_bytes(80LL << 30);
      device->set_health(api::HEALTHY);
    }
    return request;
  }

  // The report with a complete run of `pod` in which every device got `verdict` (the first one
  // `first`).
  api::ReportNodeRequest ReportRun(const std::string& node, const std::string& vendor, int devices,
                                   const std::string& pod, const std::string& verdict,
                                   const std::string& first) {
    auto request = Report(node, vendor, devices);
    auto* run = request.add_runs();
    run->set_run(pod);
    run->set_vendor(vendor);
    run->set_backend("host");
    run->set_simulated(true);
    run->set_level("L1");
    run->set_fingerprint("f1");
    for (int i = 0; i < devices; ++i) {
      auto* v = run->add_verdicts();
      v->set_check("memory-pattern");
      v->set_device(node + "-" + std::to_string(i));
      v->set_verdict(i == 0 ? first : verdict);
      v->set_evidence(v->verdict() == "Fail" ? "bit 3 stuck at 1" : "");
    }
    return request;
  }

  // What the watch would show of a pod that was created with `json`.
  op::PodRecord Appear(const std::string& json, const std::string& uid) {
    api::Pod pod;
    EXPECT_TRUE(kube::FromJson(json, &pod)) << json;
    pod.mutable_metadata()->set_uid(uid);
    pod.mutable_metadata()->set_creation_timestamp(FormatTime(clock.Now()));
    auto record = op::MakePodRecord(pod, store.resources);
    store.PutPod(record);
    return record;
  }

  // What the watch would show of the node's GPUNode.
  void Show(const std::string& name) {
    api::GPUNode node;
    node.mutable_metadata()->set_name(name);
    node.mutable_metadata()->set_uid("gpunode-" + name);
    store.gpu_nodes[name] = node;
  }
  // The status that was written last.
  api::GPUNodeStatus Written(const std::string& name) const {
    api::GPUNodeStatus out;
    for (const auto& write : writes.Of("patch", "gpunodes/status")) {
      if (write.name != name) continue;
      EXPECT_TRUE(kube::FromJson(write.body, &out)) << write.body;
    }
    return out;
  }
  // Ends the writes, those that their endings cause included.
  void Settle(const std::string& name) {
    for (int i = 0; i < 3; ++i) {
      writes.EndAll();
      nodes.Touch(name);
      nodes.Reconcile();
    }
    writes.EndAll();
  }
  // The pod has ended and is gone from the watch.
  void Vanish(const std::string& name) { store.RemovePod({"bimetal-system", name}); }

  // Takes a node through its validation; every device passes.
  void Admit(const std::string& node, const std::string& vendor, int devices) {
    AddNode(node, vendor, devices);
    nodes.OnReport(Report(node, vendor, devices));
    const auto pods = writes.Of("create", "pods");
    ASSERT_FALSE(pods.empty());
    Appear(pods.back().body, "run-" + node);
    nodes.OnReport(ReportRun(node, vendor, devices, "run-" + node, "Pass", "Pass"));
    nodes.Touch(node);
    nodes.Reconcile();
  }

  std::int64_t seq = 0;
};

}  // namespace bimetal::test
