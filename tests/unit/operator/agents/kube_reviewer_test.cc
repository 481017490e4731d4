#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/client/client.h"
#include "operator/agents/authenticator.h"
#include "operator/tls/identity_store.h"

namespace bimetal::op {
namespace {

// Answers what it is told and keeps what it was asked.
class ScriptedTransport final : public kube::Transport {
 public:
  std::vector<kube::Request> requests;
  std::vector<kube::Response> answers;

  Result<kube::Response> Send(const kube::Request& request, kube::StopToken) override {
    requests.push_back(request);
    if (answers.empty()) return Fail(ErrorCode::kUnavailable, "no answer");
    kube::Response answer = std::move(answers.front());
    answers.erase(answers.begin());
    return answer;
  }
  Result<kube::Response> Stream(const kube::Request&, const std::function<bool(std::string_view)>&,
                                kube::StopToken) override {
    return Fail(ErrorCode::kUnsupported, "no streams");
  }
};

struct KubeReviewerTest : testing::Test {
  std::shared_ptr<ScriptedTransport> transport = std::make_shared<ScriptedTransport>();
  kube::Client client{transport};
  std::unique_ptr<TokenReviewer> reviewer = MakeKubeTokenReviewer(client);

  void Answer(int status, std::string body) {
    transport->answers.push_back({status, {{"content-type", "application/json"}}, std::move(body)});
  }
};

TEST_F(KubeReviewerTest, AsksForTheAudienceAndReadsWhoItIs) {
  Answer(201, R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},
    "spec":{"token":"t0k3n","audiences":["bimetal-operator"]},
    "status":{"authenticated":true,"audiences":["bimetal-operator"],"user":{
      "username":"system:serviceaccount:bimetal-system:bimetal-agent","uid":"u",
      "groups":["system:serviceaccounts"],
      "extra":{"authentication.kubernetes.io/node-name":["n1"],
               "authentication.kubernetes.io/pod-name":["bimetal-agent-x"],
               "authentication.kubernetes.io/pod-uid":["p-1"]}}}})");
  const auto status = reviewer->Review("t0k3n", "bimetal-operator");
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_EQ(transport->requests.size(), 1u);
  EXPECT_EQ(transport->requests[0].method, "POST");
  EXPECT_EQ(transport->requests[0].path_and_query, "/apis/authentication.k8s.io/v1/tokenreviews");
  EXPECT_NE(transport->requests[0].body.find(R"("token":"t0k3n")"), std::string::npos);
  EXPECT_NE(transport->requests[0].body.find(R"("audiences":["bimetal-operator"])"),
            std::string::npos);
  EXPECT_TRUE(status->authenticated());
  EXPECT_EQ(status->user().extra().at("authentication.kubernetes.io/node-name").items(0), "n1");

  SystemClock clock;
  Authenticator authenticator(
      {.service_account = "system:serviceaccount:bimetal-system:bimetal-agent"}, *reviewer, clock);
  Answer(201, R"({"status":{"authenticated":false,"error":"[invalid bearer token]"}})");
  EXPECT_EQ(authenticator.Authenticate("t0k3n").error().message,
            "the token is not accepted by the API server: [invalid bearer token]");
}

TEST_F(KubeReviewerTest, ARefusalOfTheServerDoesNotQuoteTheToken) {
  Answer(403, R"({"kind":"Status","status":"Failure","reason":"Forbidden","code":403,
    "message":"tokenreviews.authentication.k8s.io is forbidden"})");
  const auto status = reviewer->Review("t0k3n", "bimetal-operator");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kForbidden);
  EXPECT_EQ(status.error().message.find("t0k3n"), std::string::npos);
}

TEST_F(KubeReviewerTest, TheNodeOfAPodIsThatOfTheSameUid) {
  const std::string pod =
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","uid":"p-1"},)"
      R"("spec":{"nodeName":"n7"}})";
  Answer(200, pod);
  EXPECT_EQ(reviewer->NodeOfPod("ns", "p", "p-1").value(), "n7");
  EXPECT_EQ(transport->requests[0].path_and_query, "/api/v1/namespaces/ns/pods/p");
  Answer(200, pod);
  EXPECT_EQ(reviewer->NodeOfPod("ns", "p", "p-2").error().code, ErrorCode::kNotFound);
}

TEST_F(KubeReviewerTest, TheAuthorityIsWrittenAsASecretAndAConfigMap) {
  KubeIdentityStore store(client, "ns");
  const std::string not_found =
      R"({"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"no"})";
  Answer(404, not_found);
  Answer(404, not_found);
  Answer(201, R"({"metadata":{"name":"bimetal-agent-ca","resourceVersion":"1"}})");
  Answer(201, R"({"metadata":{"name":"bimetal-agent-ca","resourceVersion":"2"}})");
  ServingOptions options;
  options.name_space = "ns";
  options.service_name = "op.ns.svc";
  const auto identity = EnsureServingIdentity(store, options, SystemClock().Now());
  ASSERT_TRUE(identity) << identity.error().message;
  ASSERT_EQ(transport->requests.size(), 4u);
  EXPECT_EQ(transport->requests[2].path_and_query, "/api/v1/namespaces/ns/secrets");
  EXPECT_NE(transport->requests[2].body.find(R"("type":"kubernetes.io/tls")"), std::string::npos);
  EXPECT_EQ(transport->requests[3].path_and_query, "/api/v1/namespaces/ns/configmaps");
  EXPECT_EQ(transport->requests[3].body.find("PRIVATE"), std::string::npos);
}

}  // namespace
}  // namespace bimetal::op
