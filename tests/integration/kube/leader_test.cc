#include "kube/leader/leader.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/integration/kube/support.h"

namespace bimetal::test {
namespace {

// Waits on another process, the API server.
bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class LeaderClusterTest : public ClusterTest {
 protected:
  std::unique_ptr<kube::LeaderElector> Elector(const std::string& identity) {
    kube::LeaderConfig config;
    config.ns = ns_;
    config.name = "leader";
    config.identity = identity;
    config.lease_duration = Seconds(4);
    config.renew_deadline = Seconds(3);
    config.renew_interval = Millis{500};
    kube::LeaderCallbacks callbacks;
    callbacks.on_started = [this] {
      const int now = ++leaders_;
      if (now > most_) most_ = now;
    };
    callbacks.on_stopped = [this] { --leaders_; };
    auto elector = std::make_unique<kube::LeaderElector>(client_, config, callbacks);
    elector->Start();
    return elector;
  }

  std::atomic<int> leaders_{0};
  std::atomic<int> most_{0};
};

TEST_F(LeaderClusterTest, OfTwoOneLeadsAndHandsOverAtOnce) {
  auto first = Elector("first");
  ASSERT_TRUE(Eventually([&] { return first->IsLeader(); }, std::chrono::seconds(10)));
  auto second = Elector("second");
  ASSERT_TRUE(Eventually([&] { return second->holder() == "first"; }, std::chrono::seconds(10)));
  EXPECT_FALSE(second->IsLeader());

  first->Stop();
  EXPECT_FALSE(first->IsLeader());
  // Given back, so the other need not wait for it to run out.
  EXPECT_TRUE(Eventually([&] { return second->IsLeader(); }, std::chrono::seconds(3)));
  second->Stop();
  EXPECT_EQ(most_, 1);
  EXPECT_EQ(leaders_, 0);
}

TEST_F(LeaderClusterTest, ARestartedLeaderTakesItsOwnLeaseBackAtOnce) {
  api::Lease lease;
  lease.mutable_metadata()->set_namespace_(ns_);
  lease.mutable_metadata()->set_name("leader");
  lease.mutable_spec()->set_holder_identity("me");
  lease.mutable_spec()->set_lease_duration_seconds(600);
  lease.mutable_spec()->set_renew_time(FormatMicroTime(SystemClock().Now()));
  ASSERT_TRUE(client_->Create(lease));
  auto stranger = Elector("stranger");
  auto me = Elector("me");
  EXPECT_TRUE(Eventually([&] { return me->IsLeader(); }, std::chrono::seconds(3)));
  EXPECT_FALSE(stranger->IsLeader());
}

}  // namespace
}  // namespace bimetal::test
