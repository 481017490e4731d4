// The exchange between ranks, as threads over loopback sockets.
#include "workloads/exchange/all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

namespace bimetal::workloads {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class AllReduceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = Listen(0);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    listener_ = std::move(listener.value());
    port_ = BoundPort(listener_).value();
  }
  GangPlace Place(std::uint32_t rank, std::uint32_t world) const {
    GangPlace place;
    place.rank = rank;
    place.world = world;
    place.master_host = "127.0.0.1";
    place.master_port = port_;
    place.session = "uid/1";
    place.join_timeout = milliseconds(60'000);
    place.round_timeout = milliseconds(60'000);
    return place;
  }
  Socket listener_;
  std::uint16_t port_ = 0;
};

TEST_F(AllReduceTest, EveryRankGetsTheSum) {
  constexpr std::uint32_t kWorld = 4;
  std::vector<std::vector<std::uint64_t>> sums(kWorld);
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    ranks.emplace_back([&, rank] {
      auto gang = rank == 0 ? AllReduce::JoinOn(Place(0, kWorld), std::move(listener_))
                            : AllReduce::Join(Place(rank, kWorld));
      ASSERT_TRUE(gang.ok()) << gang.error().message;
      std::vector<std::uint64_t> values = {rank, 10u * rank, ~0ull};
      for (std::uint64_t round = 0; round < 3; ++round) {
        const Done done = gang.value().Sum(round, &values);
        ASSERT_TRUE(done.ok()) << done.error().message;
      }
      sums[rank] = values;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  // Each of three rounds multiplies by four what the first one summed up.
  for (const auto& sum : sums) {
    EXPECT_EQ(sum, (std::vector<std::uint64_t>{6 * 16, 60 * 16, ~0ull * 64}));
  }
}

TEST_F(AllReduceTest, StrangersAreTurnedAwayAndTheGangStillMeets) {
  std::optional<Done> root;
  std::thread root_thread([&] {
    auto gang = AllReduce::JoinOn(Place(0, 2), std::move(listener_));
    root = gang.ok() ? kernels::Success() : Done(gang.error());
  });
  const Deadline soon = std::chrono::steady_clock::now() + milliseconds(60'000);
  // One that talks another language, one of an earlier attempt, one with a rank that cannot be.
  Socket stranger = std::move(ConnectWithRetry("127.0.0.1", port_, soon).value());
  ASSERT_TRUE(
      stranger.Send(std::as_bytes(std::span("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), soon).ok());
  for (GangPlace wrong : {Place(1, 2), Place(1, 3), Place(2, 2)}) {
    if (wrong.world == 2 && wrong.rank == 1) wrong.session = "uid/0";
    wrong.join_timeout = milliseconds(300);
    EXPECT_FALSE(AllReduce::Join(wrong).ok());
  }
  const auto member = AllReduce::Join(Place(1, 2));
  EXPECT_TRUE(member.ok()) << member.error().message;
  root_thread.join();
  ASSERT_TRUE(root.has_value());
  EXPECT_TRUE(root->ok());
}

TEST_F(AllReduceTest, RootNamesTheRanksThatDidNotCome) {
  GangPlace place = Place(0, 4);
  place.join_timeout = milliseconds(1'500);
  std::thread member([&] {
    GangPlace second = Place(2, 4);
    second.join_timeout = milliseconds(1'400);
    (void)AllReduce::Join(second);
  });
  const auto gang = AllReduce::JoinOn(place, std::move(listener_));
  member.join();
  ASSERT_FALSE(gang.ok());
  EXPECT_THAT(gang.error().message, HasSubstr("waiting for ranks 1, 3: no answer in time"));
}

TEST_F(AllReduceTest, MemberSaysWhomItCouldNotReach) {
  GangPlace place = Place(1, 2);
  listener_ = Socket();
  place.join_timeout = milliseconds(150);
  const auto refused = AllReduce::Join(place);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("could not reach 127.0.0.1:"));
  place.master_host = "no-such-host.invalid";
  const auto unresolved = AllReduce::Join(place);
  ASSERT_FALSE(unresolved.ok());
  EXPECT_THAT(unresolved.error().message, HasSubstr("resolve no-such-host.invalid"));
}

TEST_F(AllReduceTest, RankThatLeavesIsNamed) {
  std::thread member([&] {
    auto gang = AllReduce::Join(Place(1, 2));
    EXPECT_TRUE(gang.ok());
  });
  auto gang = AllReduce::JoinOn(Place(0, 2), std::move(listener_));
  member.join();
  ASSERT_TRUE(gang.ok());
  std::vector<std::uint64_t> values = {1};
  const Done done = gang.value().Sum(0, &values);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message, HasSubstr("receiving from rank 1: the other side closed"));
}

TEST_F(AllReduceTest, RankInAnotherRoundIsRefused) {
  std::thread member([&] {
    auto gang = AllReduce::Join(Place(1, 2));
    ASSERT_TRUE(gang.ok());
    std::vector<std::uint64_t> values = {1};
    EXPECT_FALSE(gang.value().Sum(7, &values).ok());
  });
  {
    auto gang = AllReduce::JoinOn(Place(0, 2), std::move(listener_));
    ASSERT_TRUE(gang.ok());
    std::vector<std::uint64_t> values = {1};
    const Done done = gang.value().Sum(6, &values);
    ASSERT_FALSE(done.ok());
    EXPECT_THAT(done.error().message,
                HasSubstr("rank 1: sent round 7 with 1 values where round 6"));
  }
  member.join();
}

TEST(AllReduceAloneTest, GangOfOneNeedsNoNetwork) {
  auto gang = AllReduce::Join(GangPlace{});
  ASSERT_TRUE(gang.ok());
  std::vector<std::uint64_t> values = {5};
  EXPECT_TRUE(gang.value().Sum(0, &values).ok());
  EXPECT_EQ(values[0], 5u);
}

}  // namespace
}  // namespace bimetal::workloads
