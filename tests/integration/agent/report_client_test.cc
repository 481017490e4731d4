#include "agent/report/report_client.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status_code_enum.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/integration/agent/fake_operator.h"
#include "tests/integration/agent/support.h"

namespace bimetal::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kName[] = "bimetal-operator.test.svc";

FakeAnswer Accept(const FakeCall& call) {
  FakeAnswer answer;
  answer.reply.set_accepted_seq(call.request.seq());
  return answer;
}

FakeAnswer Refuse(grpc::StatusCode code, const std::string& leader = "") {
  FakeAnswer answer;
  answer.code = code;
  answer.message = "refused by the test";
  answer.leader = leader;
  return answer;
}

class ReportClientTest : public ::testing::Test {
 protected:
  ReportClientTest() {
    WriteFile(folder_ / "ca.crt", certificates().ca_pem);
    WriteFile(folder_ / "token", "token-1\n");
  }

  // Made once: openssl takes a while.
  static const Certificates& certificates() {
    static const TempFolder folder;
    static const Certificates made = MakeCertificates(folder.path(), kName);
    return made;
  }

  std::unique_ptr<ReportClient> Connect(const std::string& address, Millis interval = Minutes(10)) {
    ReportOptions options;
    options.address = address;
    options.tls_server_name = kName;
    options.ca_file = folder_ / "ca.crt";
    options.token_file = folder_ / "token";
    options.interval = interval;
    options.first_backoff = Millis{10};
    options.max_backoff = Millis{100};
    return std::make_unique<ReportClient>(options, clock_,
                                          [this](api::ReportNodeReply) { ++replies_; });
  }

  static api::ReportNodeRequest Report(const std::string& boot_id) {
    api::ReportNodeRequest request;
    request.set_node_name("n1");
    request.set_boot_id(boot_id);
    return request;
  }

  TempFolder folder_;
  SystemClock clock_;
  std::atomic<int> replies_{0};
};

TEST_F(ReportClientTest, SendsAtOnceWithTokenAndGrowingSeq) {
  FakeOperator op(certificates(), Accept);
  const auto client = Connect(op.address());
  const std::int64_t before = clock_.Now().ms;
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(op.WaitForCalls(1));
  client->Submit(Report("b2"), true);
  ASSERT_TRUE(op.WaitForCalls(2));
  const auto calls = op.calls();
  EXPECT_EQ(calls[0].authorization, "Bearer token-1");
  EXPECT_EQ(calls[1].request.boot_id(), "b2");
  EXPECT_GE(calls[0].request.seq(), before);
  EXPECT_GT(calls[1].request.seq(), calls[0].request.seq());
  EXPECT_TRUE(Eventually([&] { return replies_ == 2; }));
  EXPECT_EQ(client->stats().failures, 0);
  EXPECT_TRUE(client->stats().accepted.has_value());
}

TEST_F(ReportClientTest, RepeatsAfterTheInterval) {
  FakeOperator op(certificates(), Accept);
  const auto client = Connect(op.address(), Millis{20});
  client->Submit(Report("b1"), true);
  EXPECT_TRUE(op.WaitForCalls(3));
}

TEST_F(ReportClientTest, TokenIsReadForEachCall) {
  FakeOperator op(certificates(), Accept);
  const auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(op.WaitForCalls(1));
  WriteFile(folder_ / "token", "token-2");
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(op.WaitForCalls(2));
  EXPECT_EQ(op.calls()[1].authorization, "Bearer token-2");
}

TEST_F(ReportClientTest, FileWithoutATokenIsTriedAgainUntilItHasOne) {
  FakeOperator op(certificates(), Accept);
  WriteFile(folder_ / "token", "two words\n");
  const auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(Eventually([&] { return client->stats().failures > 0; }));
  EXPECT_THAT(client->stats().last_error, HasSubstr("holds no token"));
  EXPECT_THAT(client->stats().last_error, ::testing::Not(HasSubstr("two words")));
  WriteFile(folder_ / "token", "token-3");
  EXPECT_TRUE(op.WaitForCalls(1));
}

TEST_F(ReportClientTest, ComesBackToAnOperatorThatRestarted) {
  auto op = std::make_unique<FakeOperator>(certificates(), Accept);
  const int port = op->port();
  const auto client = Connect(op->address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(op->WaitForCalls(1));
  op.reset();
  client->Submit(Report("b2"), true);
  ASSERT_TRUE(Eventually([&] { return client->stats().failures > 0; }));
  op = std::make_unique<FakeOperator>(certificates(), Accept, port);
  ASSERT_TRUE(op->WaitForCalls(1));
  EXPECT_EQ(op->calls()[0].request.boot_id(), "b2");
  EXPECT_TRUE(Eventually([&] { return client->stats().last_error.empty(); }));
}

TEST_F(ReportClientTest, FollowsAStandbyToTheLeaderAndComesBackWhenItIsGone) {
  auto leader = std::make_unique<FakeOperator>(certificates(), Accept);
  const std::string leader_address = leader->address();
  std::atomic<bool> leads{false};
  FakeOperator service(certificates(), [&](const FakeCall& call) {
    return leads ? Accept(call) : Refuse(grpc::StatusCode::UNAVAILABLE, leader_address);
  });
  const auto client = Connect(service.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(leader->WaitForCalls(1));
  EXPECT_EQ(client->stats().failures, 0);
  client->Submit(Report("b2"), true);
  ASSERT_TRUE(leader->WaitForCalls(2));
  EXPECT_EQ(service.calls().size(), 1U);  // the second went to the leader straight away
  leader.reset();
  leads = true;
  client->Submit(Report("b3"), true);
  ASSERT_TRUE(service.WaitForCalls(2));
  EXPECT_EQ(service.calls()[1].request.boot_id(), "b3");
}

TEST_F(ReportClientTest, TwoStandbysThatNameEachOtherDoNotMakeALoop) {
  std::string second_address;
  std::mutex mutex;
  FakeOperator first(certificates(), [&](const FakeCall&) {
    const std::lock_guard lock(mutex);
    return Refuse(grpc::StatusCode::UNAVAILABLE, second_address);
  });
  FakeOperator second(certificates(), [&](const FakeCall&) {
    return Refuse(grpc::StatusCode::UNAVAILABLE, first.address());
  });
  {
    const std::lock_guard lock(mutex);
    second_address = second.address();
  }
  const auto client = Connect(first.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(Eventually([&] { return client->stats().failures >= 2; }));
  // Two calls an attempt, and an attempt a backoff.
  const auto failures = static_cast<std::size_t>(client->stats().failures);
  EXPECT_LE(first.calls().size() + second.calls().size(), 2 * (failures + 2));
}

TEST_F(ReportClientTest, LeaderThatIsNoAddressIsIgnored) {
  FakeOperator op(certificates(), [](const FakeCall&) {
    return Refuse(grpc::StatusCode::UNAVAILABLE, "not an address");
  });
  const auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  EXPECT_TRUE(op.WaitForCalls(2));
}

TEST_F(ReportClientTest, ServerOfAnotherAuthorityIsRefusedUntilTheCaFileNamesIt) {
  const TempFolder other_folder;
  const auto other = MakeCertificates(other_folder.path(), kName);
  FakeOperator op(other, Accept);
  const auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(Eventually([&] { return client->stats().failures > 0; }));
  EXPECT_TRUE(op.calls().empty());
  WriteFile(folder_ / "ca.crt", other.ca_pem);
  EXPECT_TRUE(op.WaitForCalls(1));
}

TEST_F(ReportClientTest, ServerOfAnotherNameIsRefused) {
  const TempFolder other_folder;
  const auto other = MakeCertificates(other_folder.path(), "somebody-else.test.svc");
  WriteFile(folder_ / "ca.crt", other.ca_pem);
  FakeOperator op(other, Accept);
  const auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(Eventually([&] { return client->stats().failures > 1; }));
  EXPECT_TRUE(op.calls().empty());
}

TEST_F(ReportClientTest, SeqOfAnEarlierProcessIsOvertaken) {
  const std::int64_t ahead = SystemClock().Now().ms + 1'000'000;
  FakeOperator op(certificates(), [&](const FakeCall& call) {
    FakeAnswer answer;
    answer.reply.set_accepted_seq(std::max(ahead, call.request.seq()));
    return answer;
  });
  const auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(op.WaitForCalls(2));
  EXPECT_GT(op.calls()[1].request.seq(), ahead);
}

TEST_F(ReportClientTest, RunThatTheOperatorCannotTakeDoesNotSilenceTheNode) {
  FakeOperator op(certificates(), [](const FakeCall& call) {
    return call.request.runs_size() > 0 ? Refuse(grpc::StatusCode::INVALID_ARGUMENT) : Accept(call);
  });
  const auto client = Connect(op.address());
  auto report = Report("b1");
  report.add_runs()->set_run("r1");
  client->Submit(report, true);
  ASSERT_TRUE(Eventually([&] { return replies_ > 0; }));
  EXPECT_EQ(client->stats().failures, 1);
  EXPECT_EQ(op.calls().size(), 2U);  // and no third before the next one is due
}

TEST_F(ReportClientTest, EndsAtOnceWhileACallHangs) {
  std::atomic<bool> release{false};
  FakeOperator op(certificates(), [&](const FakeCall& call) {
    Eventually([&] { return release.load(); });
    return Accept(call);
  });
  auto client = Connect(op.address());
  client->Submit(Report("b1"), true);
  ASSERT_TRUE(Eventually([&] { return client->stats().target == op.address(); }));
  const Millis before = clock_.Monotonic();
  client.reset();
  EXPECT_LT(clock_.Monotonic() - before, Seconds(2));
  release = true;
}

}  // namespace
}  // namespace bimetal::agent
