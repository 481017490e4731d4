#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {

// A job of `pods` pods on either vendor.
inline api::GPUJob MakeJob(const std::string& name, int pods, int devices) {
  api::GPUJob job;
  job.mutable_metadata()->set_name(name);
  job.mutable_metadata()->set_namespace_("team");
  job.mutable_metadata()->set_uid("uid-" + name);
  job.mutable_metadata()->set_creation_timestamp("2027-01-15T08:00:00Z");
  job.mutable_spec()->set_queue_name("default");
  job.mutable_spec()->mutable_retry()->set_limit(1);
  for (const auto* vendor : {"nvidia", "amd"}) {
    auto* variant = job.mutable_spec()->add_variants();
    variant->set_name(std::string(vendor) == "nvidia" ? "cuda" : "rocm");
    variant->set_vendor(vendor);
    variant->set_devices_per_pod(devices);
    variant->set_image(std::string("image:") + vendor);
  }
  auto* role = job.mutable_spec()->add_roles();
  role->set_name("worker");
  role->set_replicas(pods);
  return job;
}

class JobControllerTest : public testing::Test {
 protected:
  void StartWith(int nvidia_devices, int amd_devices) {
    world_.nodes.Start();
    world_.jobs.Start();
    if (nvidia_devices > 0) world_.Admit("n1", "nvidia", nvidia_devices);
    if (amd_devices > 0) world_.Admit("a1", "amd", amd_devices);
    world_.writes.writes.clear();
  }

  // 3.60 EUR for a device and hour: one thousandth a second.
  void AddBook() {
    api::PriceBook book;
    book.mutable_spec()->set_currency("EUR");
    auto* price = book.mutable_spec()->add_prices();
    price->set_vendor("nvidia");
    price->set_model("H100");
    price->set_from("2026-01-01T00:00:00Z");
    price->set_hardware_per_hour("3.60");
    world_.store.price_books["book"] = book;
  }

  void Submit(const api::GPUJob& job) {
    world_.jobs.OnJob(job);
    Turn();
  }

  void Turn() {
    world_.nodes.Reconcile();
    world_.jobs.Reconcile();
    world_.cycle.Run();
  }

  std::vector<op::Write> CreatedPods() const {
    std::vector<op::Write> out;
    for (const auto& write : world_.writes.Of("create", "pods")) {
      if (write.name_space == "team") out.push_back(write);
    }
    return out;
  }

  // The watch shows pod `write` in this phase.
  void Show(const op::Write& write, const std::string& phase, int exit_code = 0) {
    auto record = world_.Appear(write.body, "pod-" + write.name);
    record.bound = true;
    record.scheduled_at = record.scheduled_at.value_or(bound_at_);
    record.running = phase != "Pending";
    record.ready = phase == "Running";
    record.ended = phase == "Succeeded" || phase == "Failed";
    record.succeeded = phase == "Succeeded";
    record.exit_code = exit_code;
    if (record.ended) record.finished_at = world_.clock.Now();
    world_.store.PutPod(record);
    world_.jobs.OnPod(record, false);
  }

  void Remove(const op::Write& write) {
    const op::ObjectKey key{"team", write.name};
    const auto record = world_.store.pods.at(key);
    world_.store.RemovePod(key);
    world_.jobs.OnPod(record, true);
  }

  const api::GPUJobStatus& StatusOf(const std::string& name) {
    for (const auto& sample : world_.jobs.Samples()) {
      if (sample.object->metadata().name() == name) return *sample.status;
    }
    ADD_FAILURE() << "no job " << name;
    static const api::GPUJobStatus kNone;
    return kNone;
  }

  World world_;
  TimePoint bound_at_ = world_.clock.Now();
};

}  // namespace bimetal::test
