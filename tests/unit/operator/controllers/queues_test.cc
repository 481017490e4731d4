// Queues in the operator: evictions carried out, holds kept, statuses written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/fleet.h"
#include "operator/controllers/gated_pods.h"
#include "tests/unit/operator/controllers/jobs_fixture.h"

namespace bimetal::test {
namespace {

using testing::HasSubstr;

api::GPUJob JobIn(const std::string& name, const std::string& queue, int pods,
                  const std::string& priority = "") {
  api::GPUJob job;
  job.mutable_metadata()->set_name(name);
  job.mutable_metadata()->set_namespace_("team");
  job.mutable_metadata()->set_uid("uid-" + name);
  job.mutable_metadata()->set_creation_timestamp("2027-01-15T08:00:00Z");
  job.mutable_spec()->set_queue_name(queue);
  job.mutable_spec()->set_priority_class_name(priority);
  auto* variant = job.mutable_spec()->add_variants();
  variant->set_name("cuda");
  variant->set_vendor("nvidia");
  variant->set_devices_per_pod(1);
  variant->set_image("image:nvidia");
  auto* role = job.mutable_spec()->add_roles();
  role->set_name("worker");
  role->set_replicas(pods);
  return job;
}

class QueuesTest : public JobControllerTest {
 protected:
  QueuesTest()
      : gated_(world_.clock, world_.store, world_.nodes, world_.writes, {}, [] {}),
        fleet_(world_.clock, world_.store, world_.nodes, world_.jobs, gated_, world_.cycle,
               world_.writes) {
    world_.store.priorities["high"] = 100;
    StartWith(8, 0);
  }

  api::GPUQueue& Queue(const std::string& name) {
    api::GPUQueue& queue = world_.store.queues[name];
    queue.mutable_metadata()->set_name(name);
    queue.mutable_metadata()->set_generation(queue.metadata().generation() + 1);
    return queue;
  }

  // The pods of the job that were asked for run now.
  void ShowPods(const std::string& job) {
    for (const auto& write : world_.writes.Of("create", "pods")) {
      if (write.body.find("\"uid-" + job + "\"") == std::string::npos) continue;
      auto record = world_.Appear(write.body, "pod-" + write.name);
      record.bound = record.running = record.ready = true;
      world_.store.PutPod(record);
      world_.jobs.OnPod(record, false);
      shown_[job].push_back({"team", write.name});
    }
  }

  void RemovePods(const std::string& job) {
    for (const auto& key : shown_[job]) {
      const auto record = world_.store.pods.at(key);
      world_.store.RemovePod(key);
      world_.jobs.OnPod(record, true);
    }
    shown_[job].clear();
  }

  api::GPUQueueStatus QueueStatus(const std::string& name) {
    fleet_.Reconcile();
    api::GPUQueueStatus out;
    for (const auto& write : world_.writes.Of("patch", "gpuqueues/status")) {
      if (write.name != name) continue;
      EXPECT_TRUE(kube::FromJson(write.body, &out)) << write.body;
    }
    world_.writes.EndAll();
    return out;
  }

  static std::string ReasonOf(const api::GPUQueueStatus& status, const std::string& type) {
    for (const auto& condition : status.conditions()) {
      if (condition.type() == type) return condition.reason() + ": " + condition.message();
    }
    return "";
  }

  op::GatedPodController gated_;
  op::FleetController fleet_;
  std::map<std::string, std::vector<op::ObjectKey>> shown_;
};

TEST_F(QueuesTest, AHigherPriorityEvictsWaitsForThePodsToGoAndStartsInTheirPlace) {
  Queue("default").mutable_spec()->mutable_preemption()->set_within_queue("LowerPriority");
  Submit(JobIn("low", "default", 8));
  ShowPods("low");
  Turn();
  ASSERT_EQ(StatusOf("low").state(), "Running");
  Submit(JobIn("urgent", "default", 8, "high"));
  EXPECT_EQ(StatusOf("low").state(), "Restarting");
  EXPECT_EQ(StatusOf("low").reason(), "Preempted");
  EXPECT_THAT(StatusOf("low").message(), HasSubstr("evicted for job team/urgent"));
  EXPECT_EQ(StatusOf("low").failures(), 0);
  EXPECT_EQ(StatusOf("urgent").reason(), "WaitingForPreemption");
  Submit(JobIn("third", "default", 1));  // gets nothing of what comes free
  Turn();
  EXPECT_EQ(StatusOf("urgent").reason(), "WaitingForPreemption");
  EXPECT_EQ(StatusOf("third").state(), "Pending");
  RemovePods("low");
  Turn();
  EXPECT_EQ(StatusOf("urgent").state(), "Starting");
  EXPECT_EQ(StatusOf("third").state(), "Pending");
  world_.clock.Advance(Seconds(60));
  Turn();
  Turn();
  EXPECT_EQ(StatusOf("low").state(), "Pending");  // it waits in line again
  EXPECT_EQ(StatusOf("low").reason(), "WaitingForDevices");
}

TEST_F(QueuesTest, ABrokenTreeIsSaidAndHealsByItself) {
  Queue("leaf").mutable_spec()->set_parent_name("top");
  Submit(JobIn("a", "leaf", 1));
  EXPECT_EQ(StatusOf("a").reason(), "QueueInvalid");
  EXPECT_THAT(ReasonOf(QueueStatus("leaf"), "Active"), HasSubstr("QueueInvalid: GPUQueue leaf"));
  Queue("top").mutable_spec()->set_parent_name("leaf");
  EXPECT_THAT(ReasonOf(QueueStatus("leaf"), "Active"), HasSubstr("circle (leaf > top > leaf)"));
  Queue("top").mutable_spec()->clear_parent_name();
  EXPECT_EQ(ReasonOf(QueueStatus("leaf"), "Active"), "Active: ");
  Turn();
  EXPECT_EQ(StatusOf("a").state(), "Starting");
}

TEST_F(QueuesTest, StatusTellsUseBorrowingTheHeadAndWhatIsGuaranteedInVain) {
  auto* quota = Queue("default").mutable_spec()->add_quotas();
  quota->set_device_class("nvidia");
  quota->set_guaranteed(4);
  quota = Queue("rich").mutable_spec()->add_quotas();
  quota->set_device_class("nvidia");
  quota->set_guaranteed(12);
  quota->set_limit(20);
  Submit(JobIn("big", "default", 6));
  Submit(JobIn("more", "default", 4));
  const auto status = QueueStatus("default");
  EXPECT_EQ(status.used_devices(), 6);
  EXPECT_EQ(status.guaranteed_devices(), 4);
  EXPECT_EQ(status.borrowed_devices(), 2);
  EXPECT_EQ(status.pending_jobs(), 1);
  EXPECT_EQ(status.head().job(), "team/more");
  EXPECT_EQ(status.head().reason(), "WaitingForDevices");
  ASSERT_EQ(status.usage_size(), 1);
  EXPECT_EQ(status.usage(0).running(), 6);
  EXPECT_EQ(status.usage(0).usable(), 8);
  EXPECT_THAT(ReasonOf(status, "CapacityMismatch"), HasSubstr("WithinCapacity"));
  const auto rich = QueueStatus("rich");
  EXPECT_THAT(ReasonOf(rich, "CapacityMismatch"),
              HasSubstr("12 nvidia devices are guaranteed and 8 are open"));
  EXPECT_EQ(rich.usage(0).lent(), 6);
}

TEST_F(QueuesTest, ADrainedQueueIsEmptied) {
  Submit(JobIn("a", "default", 2));
  ShowPods("a");
  Turn();
  Queue("default").mutable_spec()->set_stop_policy("HoldAndDrain");
  Turn();
  EXPECT_EQ(StatusOf("a").state(), "Restarting");
  EXPECT_THAT(StatusOf("a").message(), HasSubstr("queue default is drained"));
  RemovePods("a");
  world_.clock.Advance(Seconds(60));
  Turn();
  Turn();
  EXPECT_EQ(StatusOf("a").reason(), "QueueStopped");
}

}  // namespace
}  // namespace bimetal::test
