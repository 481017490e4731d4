// Our own kinds through the real server's schema: what the codec writes must be valid there, and
// what the server stores must come back whole.
#include <gmock/gmock.h>

#include "api/gpujob.pb.h"
#include "kube/codec/json.h"
#include "tests/integration/kube/support.h"

namespace bimetal::test {
namespace {

class CustomResourceTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Define<api::GPUJob>("gpujobs");
  }
};

constexpr const char* kJob = R"({"apiVersion":"bimetal.dev/v1alpha1","kind":"GPUJob",
  "metadata":{"name":"j"},"spec":{"variants":[{"name":"cuda","vendor":"nvidia","image":"i",
  "env":[{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],
  "roles":[{"name":"w","replicas":4,"template":{"spec":{"hostIPC":true,"containers":[{"name":"c",
  "securityContext":{"runAsUser":1000},"resources":{"limits":{"cpu":2}}}]}}}]}})";

TEST_F(CustomResourceTest, AJobComesBackWithDefaultsAndUnknownFields) {
  const auto created = client_->CreateRaw(kube::InfoOf<api::GPUJob>(), ns_, kJob);
  ASSERT_TRUE(created) << created.error().message;
  const auto job = client_->Get<api::GPUJob>(ns_, "j");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec().queue_name(), "default");
  EXPECT_EQ(job->spec().variants(0).devices_per_pod(), 1);
  EXPECT_EQ(job->spec().roles(0).replicas(), 4);
  const auto& pod = job->spec().roles(0).template_().spec();
  EXPECT_THAT(pod.raw(), testing::HasSubstr(R"("hostIPC":true)"));
  EXPECT_THAT(pod.containers(0).raw(), testing::HasSubstr(R"("runAsUser":1000)"));
  EXPECT_EQ(pod.containers(0).resources().limits().at("cpu"), "2");
  EXPECT_THAT(job->spec().variants(0).env(0).raw(), testing::HasSubstr("fieldRef"));
}

TEST_F(CustomResourceTest, AStatusFitsTheSchemaAndReplacesTheOldOne) {
  ASSERT_TRUE(client_->CreateRaw(kube::InfoOf<api::GPUJob>(), ns_, kJob));
  auto job = client_->Get<api::GPUJob>(ns_, "j");
  ASSERT_TRUE(job);
  job->mutable_status()->set_state("Pending");
  job->mutable_status()->set_message("waits for \"devices\"");
  auto* condition = job->mutable_status()->add_conditions();
  condition->set_type("Placed");
  condition->set_status("False");
  condition->set_reason("QuotaExceeded");
  condition->set_last_transition_time("2026-01-31T12:00:00Z");
  auto* blocker = job->mutable_status()->add_blockers();
  blocker->set_variant("cuda");
  blocker->set_need(8);
  const Status written = client_->ReplaceStatus(*job);
  ASSERT_TRUE(written) << written.error().message;
  job = client_->Get<api::GPUJob>(ns_, "j");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->status().conditions(0).reason(), "QuotaExceeded");
  EXPECT_EQ(job->status().blockers(0).need(), 8);

  job->clear_status();
  job->mutable_status()->set_state("Running");
  job->mutable_status()->mutable_attempts()->Add()->set_device_milliseconds(9007199254740993);
  ASSERT_TRUE(client_->ReplaceStatus(*job));
  job = client_->Get<api::GPUJob>(ns_, "j");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->status().conditions_size(), 0);
  EXPECT_EQ(job->status().attempts(0).device_milliseconds(), 9007199254740993);
}

TEST_F(CustomResourceTest, TheSchemasWordsReachTheCaller) {
  const auto refused = client_->CreateRaw(
      kube::InfoOf<api::GPUJob>(), ns_,
      R"({"apiVersion":"bimetal.dev/v1alpha1","kind":"GPUJob","metadata":{"name":"j"},"spec":{}})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("spec.variants"));
}

}  // namespace
}  // namespace bimetal::test
