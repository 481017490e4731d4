#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "kube/client/client.h"
#include "kube/codec/json.h"
#include "operator/agents/authenticator.h"
#include "operator/tls/identity_store.h"
#include "tests/integration/kube/support.h"

namespace bimetal::op {
namespace {

constexpr char kAudience[] = "bimetal-operator";

// A clock whose monotonic side the test moves; the wall clock is the system's, as the API server's
// is.
class SteppedClock final : public Clock {
 public:
  Millis monotonic{0};
  TimePoint Now() const override { return SystemClock().Now(); }
  Millis Monotonic() const override { return monotonic; }
};

// Real tokens of a real API server. No kubelet is needed: a pod may name a node that is not there.
class AgentTokens : public test::ClusterTest {
 protected:
  void SetUp() override {
    test::ClusterTest::SetUp();
    if (IsSkipped()) return;
    account_ = "system:serviceaccount:" + ns_ + ":bimetal-agent";
    for (const char* name : {"bimetal-agent", "tenant"}) {
      Post("/api/v1/namespaces/" + ns_ + "/serviceaccounts",
           std::string(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":")") +
               name + R"("}})");
    }
  }

  void Post(const std::string& path, const std::string& body, std::string* answer = nullptr) {
    kube::Request request;
    request.method = "POST";
    request.path_and_query = path;
    request.content_type = "application/json";
    request.body = body;
    const auto result = client_->Raw(request, "post " + path);
    ASSERT_TRUE(result) << result.error().message;
    if (answer) *answer = *result;
  }

  // A pod of the account on `node`; gives its uid.
  std::string MakePod(const std::string& name, const std::string& account,
                      const std::string& node) {
    Post("/api/v1/namespaces/" + ns_ + "/pods",
         R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
             R"("},"spec":{"serviceAccountName":")" + account + R"(","nodeName":")" + node +
             R"(","containers":[{"name":"c","image":"none"}]}})");
    const auto pod = client_->Get<api::Pod>(ns_, name);
    EXPECT_TRUE(pod) << pod.error().message;
    return pod ? pod->metadata().uid() : "";
  }

  // What the kubelet projects into that pod; an empty pod gives a token that is bound to none.
  std::string MakeToken(const std::string& account, const std::string& audience,
                        const std::string& pod = "", const std::string& uid = "") {
    std::string bound;
    if (!pod.empty()) {
      bound = R"(,"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":")" + pod +
              R"(","uid":")" + uid + R"("})";
    }
    std::string answer;
    Post(
        "/api/v1/namespaces/" + ns_ + "/serviceaccounts/" + account + "/token",
        R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[")" +
            audience + R"("],"expirationSeconds":600)" + bound + "}}",
        &answer);
    const auto begin = answer.find(R"("token":")");
    if (begin == std::string::npos) return "";
    const auto first = begin + 9;
    return answer.substr(first, answer.find('"', first) - first);
  }

  std::string account_;
};

TEST_F(AgentTokens, SpeakForTheNodeOfTheirPodAndNoOtherTokenDoes) {
  SteppedClock clock;
  const auto reviewer = MakeKubeTokenReviewer(*client_);
  Authenticator authenticator({.audience = kAudience, .service_account = account_}, *reviewer,
                              clock);
  const auto refusal = [&](const std::string& token) {
    const auto identity = authenticator.Authenticate(token);
    if (identity) return "accepted for " + identity->node;
    EXPECT_EQ(identity.error().code, ErrorCode::kUnauthorized) << identity.error().message;
    return identity.error().message;
  };

  const std::string uid = MakePod("agent-1", "bimetal-agent", "node-1");
  const std::string token = MakeToken("bimetal-agent", kAudience, "agent-1", uid);
  const auto identity = authenticator.Authenticate(token);
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->node, "node-1");
  EXPECT_EQ(identity->pod, "agent-1");
  EXPECT_TRUE(TokenExpiry(token)) << TokenExpiry(token).error().message;

  EXPECT_NE(refusal(MakeToken("bimetal-agent", "somebody-else", "agent-1", uid))
                .find("not accepted by the API server"),
            std::string::npos);
  const std::string tenant = MakePod("tenant-1", "tenant", "node-1");
  EXPECT_NE(refusal(MakeToken("tenant", kAudience, "tenant-1", tenant)).find("the token is of"),
            std::string::npos);
  EXPECT_NE(refusal(MakeToken("bimetal-agent", kAudience)).find("not bound to a pod"),
            std::string::npos);
  EXPECT_NE(refusal(token + "x").find("not accepted"), std::string::npos);

  // The pod goes: the token is worth nothing once the minute is over.
  kube::DeleteOptions now;
  now.grace_seconds = 0;
  ASSERT_TRUE(client_->Delete<api::Pod>(ns_, "agent-1", now));
  EXPECT_EQ(refusal(token), "accepted for node-1");
  std::string message;
  // The API server keeps answers itself, for about ten seconds.
  for (int i = 0; i < 120 && message.find("not accepted") == message.npos; ++i) {
    clock.monotonic = clock.monotonic + Minutes(2);
    message = refusal(token);
    if (message.starts_with("accepted"))
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  EXPECT_NE(message.find("not accepted"), std::string::npos) << message;
}

TEST_F(AgentTokens, ReplicasThatStartAtOnceShareOneAuthority) {
  ServingOptions options;
  options.name_space = ns_;
  options.service_name = "bimetal-operator." + ns_ + ".svc";
  const TimePoint now = SystemClock().Now();
  std::vector<Result<ServingIdentity>> identities(4, Fail(ErrorCode::kInternal, "not run"));
  const auto all = [&](TimePoint at) {
    std::vector<std::thread> replicas;
    for (auto& identity : identities) {
      replicas.emplace_back([&] {
        KubeIdentityStore store(*client_, ns_);
        identity = EnsureServingIdentity(store, options, at);
      });
    }
    for (auto& replica : replicas) replica.join();
  };
  const auto published = [&] {
    const auto map = client_->Get<api::ConfigMap>(ns_, "bimetal-agent-ca");
    return map ? map->data().at("ca.crt") : map.error().message;
  };

  all(now);
  for (const auto& identity : identities) {
    ASSERT_TRUE(identity) << identity.error().message;
    EXPECT_EQ(identity->ca_bundle_pem, published());
  }
  EXPECT_EQ(SplitBundle(published())->size(), 1u);

  // A renewal, and an hour later the turn of the new authority, by all replicas at once.
  const TimePoint later = now + Minutes(60 * 24 * 300);
  for (const TimePoint at : {later, later + Minutes(61)}) {
    all(at);
    for (const auto& identity : identities) {
      ASSERT_TRUE(identity) << identity.error().message;
      EXPECT_EQ(identity->ca_bundle_pem, published());
    }
    EXPECT_EQ(SplitBundle(published())->size(), 2u);
  }
}

}  // namespace
}  // namespace bimetal::op
