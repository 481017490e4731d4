#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kube/client/client.h"
#include "kube/codec/codec.h"
#include "operator/controllers/gated_pods.h"
#include "tests/integration/kube/support.h"
#include "tests/unit/operator/controllers/world.h"

// What the operator sends for pods of others, sent to a real API server: its validation of gated
// pods (gates only go, node affinity only narrows) is the rule that our patches must keep.
namespace bimetal::op {
namespace {

using testing::SizeIs;

class QueuedPods : public test::ClusterTest {
 protected:
  void SetUp() override {
    test::ClusterTest::SetUp();
    if (IsSkipped()) return;
    world_.store.namespaces[ns_] = {};
    world_.nodes.Start();
    world_.Admit("n1", "nvidia", 8);
    world_.writes.writes.clear();
    gated_.Start();
  }

  // A pod as a user makes it on a server without our policies: the gate is in its template.
  void Make(const std::string& name, const std::string& affinity = "") {
    const std::string json =
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
        R"(","labels":{"bimetal.dev/queue-name":"default","bimetal.dev/pod-group":"g"},)" +
        R"("annotations":{"bimetal.dev/pod-group-size":"2"}},"spec":{"schedulerName":"nobody",)" +
        affinity + R"("schedulingGates":[{"name":"bimetal.dev/queue"}],"containers":[{"name":"c",)" +
        R"("image":"none","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}})";
    const auto made = client_->CreateRaw(kube::InfoOf<api::Pod>(), ns_, json);
    ASSERT_TRUE(made) << made.error().message;
    Show(name);
  }
  api::Pod Show(const std::string& name) {
    const auto pod = client_->Get<api::Pod>(ns_, name);
    EXPECT_TRUE(pod) << pod.error().message;
    const auto record = MakePodRecord(*pod, world_.store.resources);
    world_.store.PutPod(record);
    gated_.OnPod(record, false);
    return *pod;
  }
  void Turn() {
    gated_.Reconcile();
    cycle_.Run();
  }
  // Sends what is waiting; how each ended comes back as in the operator.
  void Send() {
    for (; sent_ < world_.writes.writes.size(); ++sent_) {
      const auto write = world_.writes.writes[sent_];
      const Status status = write.run(*client_);
      EXPECT_TRUE(status) << write.verb << " " << write.resource << ": " << status.error().message
                          << "\n" << write.body;
      if (write.done) write.done(status);
    }
  }

  test::World world_;
  GatedPodController gated_{world_.clock, world_.store, world_.nodes, world_.writes, {}, [] {}};
  SchedulingCycle cycle_{world_.clock, world_.store, world_.nodes, {&gated_}};
  std::size_t sent_ = 0;
};

TEST_F(QueuedPods, TheServerTakesOurPatchesAlsoWhereThePodChangedMeanwhile) {
  Make("a",
       R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
       R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"none","operator":"DoesNotExist"}]},)"
       R"({"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n9"]}]}]}}},)");
  world_.clock.Advance(Seconds(1));
  Turn();
  world_.clock.Advance(Seconds(10));
  Turn();
  Send();
  const auto waits = Show("a");
  EXPECT_EQ(waits.metadata().annotations().at(kWaitingAnnotation).find("PodGroupIncomplete: "), 0U);
  Make("b");
  // Somebody touches the pod after we have seen it: our first patch of it is stale.
  const auto touched = client_->Patch<api::Pod>(ns_, "b", R"({"metadata":{"labels":{"x":"y"}}})",
                                                kube::PatchType::kMerge);
  ASSERT_TRUE(touched) << touched.error().message;
  Turn();
  Send();
  for (const char* name : {"a", "b"}) {
    const auto pod = Show(name);
    EXPECT_THAT(pod.spec().scheduling_gates(), SizeIs(0));
    EXPECT_EQ(pod.metadata().annotations().at(kAdmittedToAnnotation), "default");
    EXPECT_EQ(pod.metadata().annotations().at(kPinnedNodeAnnotation), "n1");
    EXPECT_FALSE(pod.metadata().annotations().contains(kWaitingAnnotation));
    const auto& terms = pod.spec()
                            .affinity()
                            .node_affinity()
                            .required_during_scheduling_ignored_during_execution()
                            .node_selector_terms();
    ASSERT_THAT(terms, SizeIs(name[0] == 'a' ? 2 : 1));
    for (const auto& term : terms) EXPECT_EQ(term.match_fields().rbegin()->values(0), "n1");
  }
  EXPECT_EQ(cycle_.Queues()["default"].used[core::Vendor::kNvidia], 4);
}

TEST_F(QueuedPods, APodThatWasMadeAnewUnderTheSameNameIsLeftAlone) {
  Make("a");
  Make("b");
  Turn();
  kube::DeleteOptions now;
  now.grace_seconds = 0;
  ASSERT_TRUE(client_->Delete<api::Pod>(ns_, "b", now));
  const auto old = world_.store.pods.at({ns_, "b"});
  Make("b");
  for (const auto& write : world_.writes.Of("patch", "pods")) {
    const Status status = write.run(*client_);
    EXPECT_EQ(static_cast<bool>(status), write.name == "a") << write.name;
    if (!status) {
      EXPECT_EQ(status.error().code, ErrorCode::kNotFound) << status.error().message;
    }
  }
  EXPECT_THAT(Show("b").spec().scheduling_gates(), SizeIs(1));
}

TEST_F(QueuedPods, AnEvictionNamesThePodByItsUid) {
  const auto made = client_->CreateRaw(
      kube::InfoOf<api::Pod>(), ns_,
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"soft","labels":{)"
      R"("bimetal.dev/queue-name":"default"},"annotations":{"bimetal.dev/preemptible":"true",)"
      R"("bimetal.dev/admitted-to":"default"}},"spec":{"schedulerName":"nobody","containers":[)"
      R"({"name":"c","image":"none"}]}})");
  ASSERT_TRUE(made) << made.error().message;
  const auto pod = Show("soft");
  gated_.Reconcile();
  ASSERT_TRUE(gated_.Evict({Uid{"pods/" + ns_ + "/" + pod.metadata().uid()}, Uid{"x"}, "for x"}));
  Send();
  const auto gone = client_->Get<api::Pod>(ns_, "soft");
  EXPECT_TRUE(!gone || !gone->metadata().deletion_timestamp().empty());
}

}  // namespace
}  // namespace bimetal::op
