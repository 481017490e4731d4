// A fault under running pods, as the API server takes it: the Event where `kubectl describe` looks
// for it, and an eviction that meets the right pod alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "api/gpujob.pb.h"
#include "kube/client/client.h"
#include "operator/controllers/nodes.h"
#include "tests/integration/kube/support.h"
#include "tests/unit/operator/controllers/world.h"

namespace bimetal::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kJob[] = R"({"apiVersion":"bimetal.dev/v1alpha1","kind":"GPUJob",
  "metadata":{"name":"train"},"spec":{"suspend":true,
  "variants":[{"name":"cuda","vendor":"nvidia","image":"none"}],"roles":[{"name":"w","replicas":2}]}})";

// The node, its reports and the decisions are a World's; jobs and pods of `ns_` are the server's,
// and so is what becomes of the writes in that namespace. No kubelet: pods name a node that is not
// there.
class DeviceFaultTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Define<api::GPUJob>("gpujobs");
    if (HasFatalFailure()) return;
    const auto created = client_->CreateRaw(kube::InfoOf<api::GPUJob>(), ns_, kJob);
    ASSERT_TRUE(created) << created.error().message;
    const auto job = client_->Get<api::GPUJob>(ns_, "train");
    ASSERT_TRUE(job) << job.error().message;
    job_uid_ = job->metadata().uid();
    world_.nodes.Start();
    world_.Admit(kNode, "nvidia", 3);
    world_.Show(kNode);
    for (const char* pod : {"train-1-0", "train-1-1"}) AddPod(pod, job_uid_);
    AddPod("notebook", "");
  }
  void TearDown() override {
    // What no kubelet ends would keep the namespace.
    for (const auto& [name, uid] : pods_) {
      static_cast<void>(client_->Delete<api::Pod>(
          ns_, name, {.uid = uid, .grace_seconds = 0, .propagation = ""}));
    }
    ClusterTest::TearDown();
  }

  // On the server, and in the store as the watch would show it.
  void AddPod(const std::string& name, const std::string& job) {
    std::string labels;
    if (!job.empty()) {
      labels = R"(,"labels":{"bimetal.dev/job-uid":")" + job +
               R"(","bimetal.dev/job":"train","bimetal.dev/attempt":"1","bimetal.dev/role":"w",)"
               R"("bimetal.dev/index":")" +
               name.substr(name.size() - 1) + "\"}";
    }
    const auto created =
        client_->CreateRaw(kube::InfoOf<api::Pod>(), ns_,
                           R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + "\"" +
                               labels + R"(},"spec":{"nodeName":")" + kNode +
                               R"(","containers":[{"name":"c","image":"none"}]}})");
    if (!created &&
        created.error().message.find("only the operator makes pods") != std::string::npos) {
      GTEST_SKIP()
          << "SKIPPED: the chart is installed, and its policy lets nobody else make these pods";
    }
    ASSERT_TRUE(created) << created.error().message;
    const auto pod = client_->Get<api::Pod>(ns_, name);
    ASSERT_TRUE(pod) << pod.error().message;
    pods_[name] = pod->metadata().uid();
    world_.store.PutPod(op::MakePodRecord(*pod, world_.store.resources));
  }

  void OnFault(const std::string& what) {
    world_.store.profiles["quick"].mutable_spec()->set_on_fault(what);
  }

  // The agent finds the first `faults` devices broken; they are held by these pods in their order.
  void Hear(op::NodeController& nodes, std::size_t faults,
            const std::vector<std::string>& holders) {
    auto report = world_.Report(kNode, "nvidia", 3);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      auto* device = report.mutable_inventory()->mutable_devices(static_cast<int>(i));
      device->set_in_use(true);
      device->set_holder(ns_ + "/" + holders[i]);
      if (i >= faults) continue;
      auto* finding = report.mutable_inventory()->add_findings();
      finding->set_code("XidFatal");
      finding->set_severity("Critical");
      finding->set_device(device->id());
      finding->set_vendor("nvidia");
      finding->set_effect("Cordon");
      finding->set_event("boot-1/xid/79/" + std::to_string(i));
      finding->set_evidence("NVRM: Xid (PCI:0000:1b:00): 79");
    }
    nodes.OnReport(report);
    CarryOut();
  }

  // Sends what was asked for in our namespace since the last call.
  void CarryOut() {
    for (; carried_out_ < world_.writes.writes.size(); ++carried_out_) {
      const op::Write& write = world_.writes.writes[carried_out_];
      if (write.name_space != ns_) continue;
      const Status status = write.run(*client_);
      EXPECT_TRUE(status) << write.verb << " " << write.resource << " " << write.name << ": "
                          << status.error().message;
    }
    world_.writes.EndAll();
  }

  // What `kubectl describe` shows of an object.
  std::vector<api::Event> Told(const std::string& kind, const std::string& name,
                               const std::string& uid) {
    const auto events = client_->ListAll<api::Event>(
        {.ns = ns_,
         .field_selector = "involvedObject.kind=" + kind + ",involvedObject.name=" + name +
                           ",involvedObject.uid=" + uid + ",reason=DeviceFault"});
    EXPECT_TRUE(events) << events.error().message;
    return events ? events->items : std::vector<api::Event>();
  }

  bool Leaves(const std::string& pod) {
    const auto found = client_->Get<api::Pod>(ns_, pod);
    if (!found) {
      EXPECT_EQ(found.error().code, ErrorCode::kNotFound) << found.error().message;
      return true;
    }
    return !found->metadata().deletion_timestamp().empty();
  }

  static constexpr char kNode[] = "no-such-node";
  World world_;
  std::string job_uid_;
  std::map<std::string, std::string> pods_;  // uid by name
  std::size_t carried_out_ = 0;
};

TEST_F(DeviceFaultTest, TheJobIsToldByOneEventAndItsPodsStay) {
  Hear(world_.nodes, 1, {"train-1-0", "train-1-1", "notebook"});
  Hear(world_.nodes, 1, {"train-1-0", "train-1-1", "notebook"});
  const auto told = Told("GPUJob", "train", job_uid_);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].type(), "Warning");
  EXPECT_EQ(told[0].source().component(), "bimetal-operator");
  for (const auto* part :
       {"train-1-0", "no-such-node-0", "Xid (PCI:0000:1b:00): 79", "onFault: Nothing"}) {
    EXPECT_THAT(told[0].message(), HasSubstr(part));
  }
  for (const auto& [pod, uid] : pods_) EXPECT_FALSE(Leaves(pod)) << pod;

  // An operator that starts now tells the same thing: the server keeps one Event.
  *world_.store.gpu_nodes[kNode].mutable_status() = world_.Written(kNode);
  op::NodeController restarted(world_.clock, world_.store, world_.writes, World::NodeOptions(),
                               [] {});
  restarted.Start();
  const std::size_t before = world_.writes.Of("create", "events").size();
  Hear(restarted, 1, {"train-1-0", "train-1-1", "notebook"});
  EXPECT_GT(world_.writes.Of("create", "events").size(), before) << "it was not told again";
  EXPECT_THAT(Told("GPUJob", "train", job_uid_), SizeIs(1));
}

TEST_F(DeviceFaultTest, EvictEndsTheHolderOfTheJobAndNobodyElse) {
  OnFault("Evict");
  Hear(world_.nodes, 1, {"train-1-0", "train-1-1", "notebook"});
  ASSERT_THAT(Told("GPUJob", "train", job_uid_), SizeIs(1));
  EXPECT_THAT(Told("GPUJob", "train", job_uid_)[0].message(), HasSubstr("onFault: Evict"));
  EXPECT_TRUE(Leaves("train-1-0"));
  EXPECT_FALSE(Leaves("train-1-1"));
  EXPECT_FALSE(Leaves("notebook"));
}

TEST_F(DeviceFaultTest, APodOfNoJobIsToldItselfAndStays) {
  OnFault("Evict");
  Hear(world_.nodes, 1, {"notebook", "train-1-0", "train-1-1"});
  const auto told = Told("Pod", "notebook", pods_["notebook"]);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].message(), HasSubstr("left alone"));
  EXPECT_THAT(Told("GPUJob", "train", job_uid_), IsEmpty());
  for (const auto& [pod, uid] : pods_) EXPECT_FALSE(Leaves(pod)) << pod;
}

TEST_F(DeviceFaultTest, AnotherPodOfTheSameNameIsNotEvicted) {
  OnFault("Evict");
  // The watch lags: the pod that it shows is gone, and the next attempt has one of its name.
  ASSERT_TRUE(client_->Delete<api::Pod>(ns_, "train-1-0",
                                        {.uid = {}, .grace_seconds = 0, .propagation = ""}));
  const op::PodRecord old = world_.store.pods.at({ns_, "train-1-0"});
  AddPod("train-1-0", job_uid_);
  world_.store.PutPod(old);
  Hear(world_.nodes, 1, {"train-1-0", "train-1-1", "notebook"});
  EXPECT_FALSE(Leaves("train-1-0")) << "it holds no device that is broken";
}

}  // namespace
}  // namespace bimetal::test
