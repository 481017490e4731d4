#include "operator/agents/service.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/agent.grpc.pb.h"
#include "tests/unit/operator/agents/fake_reviewer.h"

namespace bimetal::op {
namespace {

constexpr char kHost[] = "op.ns.svc";
constexpr Millis kDay = Minutes(60 * 24);

api::ReportNodeRequest Report(const std::string& node, std::int64_t seq = 1) {
  api::ReportNodeRequest request;
  request.set_node_name(node);
  request.set_boot_id("boot-1");
  request.set_seq(seq);
  return request;
}

// A running service with an authority of its own, and what a client of it needs.
struct ServiceTest : testing::Test {
  TimePoint now = SystemClock().Now();
  KeyPair ca = MakeCa("test", now, kDay).value();
  KeyPair identity = IssueServer(ca, {kHost}, {}, now, kDay).value();
  FakeReviewer reviewer;
  FakeClock clock;
  Authenticator authenticator{
      {.audience = kAudience, .service_account = kAccount}, reviewer, clock};
  std::mutex mutex;
  std::vector<api::ReportNodeRequest> reports;
  std::map<std::string, int, std::less<>> counts;
  std::optional<std::string> leader;
  std::function<Result<api::ReportNodeReply>(const api::ReportNodeRequest&)> answer;
  std::unique_ptr<AgentServer> server;

  void SetUp() override {
    reviewer.AddToken("token-n1", "n1");
    AgentServerOptions options;
    options.listen = "127.0.0.1:0";
    options.identity = identity;
    options.shutdown_grace = Seconds(5);
    auto started = AgentServer::Start(options, authenticator, Hooks());
    ASSERT_TRUE(started) << started.error().message;
    server = *std::move(started);
  }

  AgentServerHooks Hooks() {
    AgentServerHooks hooks;
    hooks.report = [this](api::ReportNodeRequest request) -> Result<api::ReportNodeReply> {
      {
        const std::lock_guard lock(mutex);
        reports.push_back(request);
      }
      if (answer) return answer(request);
      api::ReportNodeReply reply;
      reply.set_accepted_seq(request.seq());
      return reply;
    };
    hooks.leader_address = [this] {
      const std::lock_guard lock(mutex);
      return leader;
    };
    hooks.count = [this](std::string_view result) {
      const std::lock_guard lock(mutex);
      ++counts[std::string(result)];
    };
    return hooks;
  }

  std::shared_ptr<grpc::Channel> Dial(const std::string& roots, const std::string& host = kHost) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = roots;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(host);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server->port()),
                                     grpc::SslCredentials(tls), arguments);
  }

  struct Outcome {
    grpc::Status status;
    api::ReportNodeReply reply;
    std::string leader;
  };

  Outcome Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
               const api::ReportNodeRequest& request, bool wait_for_ready = false) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_wait_for_ready(wait_for_ready);
    if (!token.empty()) context.AddMetadata("authorization", token);
    Outcome out;
    out.status = api::AgentService::NewStub(channel)->ReportNode(&context, request, &out.reply);
    const auto& trailing = context.GetServerTrailingMetadata();
    if (const auto found = trailing.find("bimetal-leader"); found != trailing.end()) {
      out.leader = std::string(found->second.data(), found->second.size());
    }
    return out;
  }

  Outcome Call(const std::string& token, const api::ReportNodeRequest& request) {
    return Call(Dial(ca.cert_pem), token, request);
  }

  int Count(const char* result) {
    const std::lock_guard lock(mutex);
    return counts[result];
  }
};

TEST_F(ServiceTest, AnAgentsReportReachesTheHandlerAndItsReplyTheAgent) {
  const Outcome outcome = Call("Bearer token-n1", Report("n1", 42));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.reply.accepted_seq(), 42);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].node_name(), "n1");
  EXPECT_EQ(Count("accepted"), 1);
}

TEST_F(ServiceTest, ManyCallsOfOneTokenAreOneReview) {
  const auto channel = Dial(ca.cert_pem);
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(Call(channel, "Bearer token-n1", Report("n1", i)).status.ok());
  }
  EXPECT_EQ(reviewer.reviews(), 1);
  // The same token after the API server has ceased to accept it: refused once the minute is over.
  reviewer.Remove("token-n1");
  clock.Advance(Seconds(60));
  EXPECT_EQ(Call(channel, "Bearer token-n1", Report("n1", 21)).status.error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call(channel, "Bearer token-n1", Report("n1", 21)).status.error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(reviewer.reviews(), 2);
}

TEST_F(ServiceTest, WhoCannotProveToBeAnAgentIsUnauthenticated) {
  reviewer.AddToken("audience", "n1", kAccount, "somebody-else");
  reviewer.AddToken("account", "n1", "system:serviceaccount:tenant:default");
  for (const char* header : {"", "token-n1", "Basic token-n1", "Bearer ", "Bearer unknown",
                             "Bearer audience", "Bearer account"}) {
    const Outcome outcome = Call(header, Report("n1"));
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << header;
  }
  EXPECT_TRUE(reports.empty());
  EXPECT_EQ(Count("unauthenticated"), 7);
}

TEST_F(ServiceTest, AnAgentSpeaksForItsOwnNodeAlone) {
  const Outcome outcome = Call("Bearer token-n1", Report("n2"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(outcome.status.error_message(), "the agent of node n1 cannot report node n2");
  EXPECT_TRUE(reports.empty());
  EXPECT_EQ(Count("permission_denied"), 1);
}

TEST_F(ServiceTest, ADeviceReportedTwiceIsInvalid) {
  api::ReportNodeRequest request = Report("n1");
  for (int i = 0; i < 2; ++i) {
    auto& device = *request.mutable_inventory()->add_devices();
    device.set_id("GPU-1");
    device.set_vendor("nvidia");
  }
  const Outcome outcome = Call("Bearer token-n1", request);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(outcome.status.error_message(),
            "inventory.devices[1].id: \"GPU-1\" is also the id of devices[0]");
  EXPECT_TRUE(reports.empty());
  EXPECT_EQ(Count("invalid"), 1);
}

TEST_F(ServiceTest, NoDevicesAreAFactLikeAnyOther) {
  EXPECT_TRUE(Call("Bearer token-n1", Report("n1")).status.ok());
  EXPECT_EQ(reports.at(0).inventory().devices_size(), 0);
}

TEST_F(ServiceTest, AMessageOfFiveMegabytesIsRefusedUnread) {
  api::ReportNodeRequest request = Report("n1");
  request.set_agent_version(std::string(5 << 20, 'x'));
  const auto channel = Dial(ca.cert_pem);
  EXPECT_EQ(Call(channel, "Bearer token-n1", request).status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(reviewer.reviews(), 0);
  EXPECT_TRUE(Call(channel, "Bearer token-n1", Report("n1")).status.ok());
}

// The most that an agent keeps of one run (RunReader::kMaxRunBytes), beside 64 devices.
TEST_F(ServiceTest, ARunOfThreeMegabytesOf64DevicesIsTaken) {
  api::ReportNodeRequest request = Report("n1");
  api::Stack* stack = request.mutable_inventory()->add_stacks();
  stack->set_vendor("amd");
  stack->set_fingerprint("f1");
  for (int i = 0; i < 64; ++i) {
    api::Device* device = request.mutable_inventory()->add_devices();
    device->set_id("device-" + std::to_string(i));
    device->set_vendor("amd");
    device->set_health_reason(std::string(1000, 'h'));
    for (int k = 0; k < 32; ++k) {
      (*device->mutable_firmware())["block-" + std::to_string(k)] = std::string(100, 'f');
    }
  }
  api::ValidationRun* run = request.add_runs();
  run->set_run("uid-1");
  run->set_vendor("amd");
  while (run->ByteSizeLong() < std::size_t{3} << 20) {
    api::Verdict* verdict = run->add_verdicts();
    verdict->set_check("gemm-rate-fp8-fnuz");
    verdict->set_device("device-" + std::to_string(run->verdicts_size() % 64));
    verdict->set_verdict("Fail");
    verdict->set_evidence(std::string(1024, 'e'));
  }
  const Outcome outcome = Call("Bearer token-n1", request);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].runs(0).verdicts_size(), run->verdicts_size());
}

TEST_F(ServiceTest, AStandbyNamesTheLeaderAndAsksNobody) {
  const auto set = [&](std::optional<std::string> value) {
    const std::lock_guard lock(mutex);
    leader = std::move(value);
  };
  const auto channel = Dial(ca.cert_pem);
  set("10.1.2.3:9443");
  Outcome outcome = Call(channel, "Bearer token-n1", Report("n1"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(outcome.leader, "10.1.2.3:9443");
  for (const char* unknown : {"", "bad\nvalue"}) {
    set(unknown);
    outcome = Call(channel, "Bearer token-n1", Report("n1"));
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(outcome.leader, "");
  }
  EXPECT_TRUE(reports.empty());
  EXPECT_EQ(reviewer.reviews(), 0);
  EXPECT_EQ(Count("not_leader"), 3);
  set(std::nullopt);
  EXPECT_TRUE(Call(channel, "Bearer token-n1", Report("n1")).status.ok());
}

TEST_F(ServiceTest, AnErrorOfTheHandlerKeepsItsMeaning) {
  // An old boot's report, for one: the handler is the one who knows.
  answer = [](const api::ReportNodeRequest& request) -> Result<api::ReportNodeReply> {
    return Fail(ErrorCode::kInvalid, "boot_id: " + request.boot_id() + " is of an earlier boot");
  };
  Outcome outcome = Call("Bearer token-n1", Report("n1"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(outcome.status.error_message(), "boot_id: boot-1 is of an earlier boot");
  answer = [](const api::ReportNodeRequest&) -> Result<api::ReportNodeReply> {
    return Fail(ErrorCode::kDeadline, "the loop is busy");
  };
  outcome = Call("Bearer token-n1", Report("n1"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Count("deadline"), 1);
}

TEST_F(ServiceTest, AnApiServerThatDoesNotAnswerMakesTheServiceUnavailable) {
  reviewer.FailWith(Error{ErrorCode::kForbidden, "create tokenreviews: forbidden", 0});
  EXPECT_EQ(Call("Bearer token-n1", Report("n1")).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  reviewer.FailWith(std::nullopt);
  EXPECT_TRUE(Call("Bearer token-n1", Report("n1")).status.ok());
}

TEST_F(ServiceTest, OnlyTheRightAuthorityAndNameAreTrustedAndNothingGoesInTheClear) {
  const KeyPair other = MakeCa("other", now, kDay).value();
  const auto request = Report("n1");
  EXPECT_EQ(Call(Dial(other.cert_pem), "Bearer token-n1", request).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call(Dial(ca.cert_pem, "other.ns.svc"), "Bearer token-n1", request).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  const auto clear = grpc::CreateChannel("127.0.0.1:" + std::to_string(server->port()),
                                         grpc::InsecureChannelCredentials());
  EXPECT_FALSE(Call(clear, "Bearer token-n1", request).status.ok());
  EXPECT_TRUE(reports.empty());
  EXPECT_TRUE(Call(Dial(other.cert_pem + ca.cert_pem), "Bearer token-n1", request).status.ok());
}

TEST_F(ServiceTest, ANewIdentityIsServedWithoutARestartOnTheSamePort) {
  const KeyPair new_ca = MakeCa("new", now, kDay).value();
  const auto old_channel = Dial(ca.cert_pem + new_ca.cert_pem);
  ASSERT_TRUE(Call(old_channel, "Bearer token-n1", Report("n1", 1)).status.ok());
  const int port = server->port();

  EXPECT_FALSE(server->SetIdentity({identity.cert_pem, new_ca.key_pem}));
  ASSERT_TRUE(Call(old_channel, "Bearer token-n1", Report("n1", 2)).status.ok());

  const auto changed = server->SetIdentity(IssueServer(new_ca, {kHost}, {}, now, kDay).value());
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(server->port(), port);
  EXPECT_TRUE(Call(Dial(new_ca.cert_pem), "Bearer token-n1", Report("n1", 3)).status.ok());
  EXPECT_EQ(Call(Dial(ca.cert_pem), "Bearer token-n1", Report("n1", 3)).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  // An agent that trusts both finds its way back by itself.
  EXPECT_TRUE(Call(old_channel, "Bearer token-n1", Report("n1", 4), true).status.ok());
}

TEST_F(ServiceTest, AStopLetsTheCallInProgressEndAndTakesNoOther) {
  std::condition_variable changed;
  bool entered = false;
  bool leave = false;
  answer = [&](const api::ReportNodeRequest& request) -> Result<api::ReportNodeReply> {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [&] { return leave; });
    api::ReportNodeReply reply;
    reply.set_accepted_seq(request.seq());
    return reply;
  };
  Outcome slow;
  std::thread caller([&] { slow = Call("Bearer token-n1", Report("n1", 7)); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  std::thread stopper([&] { server->Stop(); });
  {
    const std::lock_guard lock(mutex);
    leave = true;
    changed.notify_all();
  }
  caller.join();
  stopper.join();
  EXPECT_TRUE(slow.status.ok()) << slow.status.error_message();
  EXPECT_EQ(slow.reply.accepted_seq(), 7);
  EXPECT_EQ(Call("Bearer token-n1", Report("n1", 8)).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  server->Stop();
  EXPECT_FALSE(server->SetIdentity(identity));
}

TEST_F(ServiceTest, CallsThatBlockDoNotHoldUpOthers) {
  std::condition_variable changed;
  int blocked = 0;
  bool leave = false;
  answer = [&](const api::ReportNodeRequest& request) -> Result<api::ReportNodeReply> {
    if (request.seq() == 1) {
      std::unique_lock lock(mutex);
      ++blocked;
      changed.notify_all();
      changed.wait(lock, [&] { return leave; });
    }
    return api::ReportNodeReply();
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 12; ++i) {
    callers.emplace_back(
        [&] { EXPECT_TRUE(Call("Bearer token-n1", Report("n1", 1)).status.ok()); });
  }
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return blocked == 12; });
  }
  EXPECT_TRUE(Call("Bearer token-n1", Report("n1", 2)).status.ok());
  {
    const std::lock_guard lock(mutex);
    leave = true;
    changed.notify_all();
  }
  for (auto& caller : callers) caller.join();
}

TEST_F(ServiceTest, TheStandardHealthServiceAnswers) {
  // grpc.health.v1.HealthCheckRequest{} is no bytes; SERVING is field 1, value 1.
  const auto channel = Dial(ca.cert_pem);
  ASSERT_TRUE(
      channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const grpc::Slice nothing("");
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, this);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice slice;
  ASSERT_TRUE(response.DumpToSingleSlice(&slice).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()), "\x08\x01");
}

TEST(AgentServer, AnAddressThatIsNotOursOrAnIdentityThatIsNoneIsAnError) {
  FakeReviewer reviewer;
  FakeClock clock;
  Authenticator authenticator({.audience = kAudience, .service_account = kAccount}, reviewer,
                              clock);
  const TimePoint now = SystemClock().Now();
  const KeyPair ca = MakeCa("c", now, kDay).value();
  AgentServerHooks hooks;
  hooks.report = [](const api::ReportNodeRequest&) { return api::ReportNodeReply(); };
  hooks.leader_address = [] { return std::optional<std::string>(); };
  AgentServerOptions options;
  options.identity = IssueServer(ca, {"a"}, {}, now, kDay).value();
  options.listen = "192.0.2.1:1";
  auto started = AgentServer::Start(options, authenticator, hooks);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kUnavailable);
  options.listen = "127.0.0.1:0";
  EXPECT_FALSE(AgentServer::Start(options, authenticator, {}));
  options.identity.key_pem = ca.key_pem;
  started = AgentServer::Start(options, authenticator, hooks);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace bimetal::op
