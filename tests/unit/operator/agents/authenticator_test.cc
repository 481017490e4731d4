#include "operator/agents/authenticator.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/base/base64.h"
#include "tests/unit/operator/agents/fake_reviewer.h"

namespace bimetal::op {
namespace {

std::string Jwt(const std::string& claims) {
  return Base64UrlEncode("{\"alg\":\"RS256\"}") + "." + Base64UrlEncode(claims) + ".c2ln";
}

struct AuthenticatorTest : testing::Test {
  FakeReviewer reviewer;
  FakeClock clock;
  AuthenticatorOptions options{.audience = kAudience, .service_account = kAccount};
  Authenticator authenticator{options, reviewer, clock};

  std::string Refusal(const std::string& token) {
    const auto identity = authenticator.Authenticate(token);
    if (identity) return "accepted";
    EXPECT_EQ(identity.error().code, ErrorCode::kUnauthorized) << identity.error().message;
    EXPECT_EQ(identity.error().message.find(token.empty() ? "\x01" : token), std::string::npos);
    return identity.error().message;
  }
};

TEST_F(AuthenticatorTest, AnAgentsTokenSpeaksForTheNodeOfItsPod) {
  reviewer.AddToken("t1", "n1");
  const auto identity = authenticator.Authenticate("t1");
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->node, "n1");
  EXPECT_EQ(identity->pod, "agent-n1");
  EXPECT_EQ(identity->username, kAccount);
}

TEST_F(AuthenticatorTest, AnOlderServersTokenSpeaksForTheNodeThatItsPodIsBoundTo) {
  reviewer.AddToken("t1", "");
  reviewer.AddPod("bimetal-system/agent-/uid-", "n7");
  EXPECT_EQ(authenticator.Authenticate("t1")->node, "n7");
}

TEST_F(AuthenticatorTest, EveryOtherTokenIsRefusedWithTheReason) {
  reviewer.AddToken("tok-1", "n1", kAccount, "https://kubernetes.default.svc");
  reviewer.AddToken("tok-2", "n1", "system:serviceaccount:bimetal-system:default");
  reviewer.AddToken("tok-3", "n1", "system:serviceaccount:evil:bimetal-agent");
  reviewer.AddToken("user", "n1", "admin");
  reviewer.AddToken("tok-6", "");
  api::TokenReviewStatus unbound;
  unbound.set_authenticated(true);
  unbound.add_audiences(kAudience);
  unbound.mutable_user()->set_username(kAccount);
  reviewer.Set("tok-5", unbound);
  api::TokenReviewStatus lists = unbound;
  auto& nodes = (*lists.mutable_user()->mutable_extra())["authentication.kubernetes.io/node-name"];
  nodes.add_items("n1");
  nodes.add_items("n2");
  reviewer.Set("two-nodes", lists);
  api::TokenReviewStatus no_audience = unbound;
  no_audience.clear_audiences();
  reviewer.Set("tok-4", no_audience);

  EXPECT_NE(Refusal("").find("no bearer token"), std::string::npos);
  EXPECT_NE(Refusal(std::string(20'000, 'x')).find("16 KiB"), std::string::npos);
  EXPECT_NE(Refusal("unknown-token").find("token is expired"), std::string::npos);
  EXPECT_NE(Refusal("tok-1").find("not for audience bimetal-operator"), std::string::npos);
  EXPECT_NE(Refusal("tok-4").find("not for audience"), std::string::npos);
  EXPECT_NE(authenticator.Authenticate("tok-2").error().message.find(
                "of system:serviceaccount:bimetal-system:default, not of"),
            std::string::npos);
  EXPECT_FALSE(authenticator.Authenticate("tok-3"));
  EXPECT_FALSE(authenticator.Authenticate("user"));
  EXPECT_NE(authenticator.Authenticate("tok-5").error().message.find("not bound to a pod"),
            std::string::npos);
  EXPECT_FALSE(authenticator.Authenticate("two-nodes"));
  EXPECT_NE(authenticator.Authenticate("tok-6").error().message.find("gone or on no node"),
            std::string::npos);
}

TEST_F(AuthenticatorTest, AnAnswerIsKeptForAMinuteAndARefusalForFiveSeconds) {
  reviewer.AddToken("good", "n1");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 1);
  clock.Advance(Millis{59'999});
  EXPECT_TRUE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 1);
  reviewer.Remove("good");
  clock.Advance(Millis{1});
  EXPECT_FALSE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 2);

  reviewer.AddToken("good", "n1");
  clock.Advance(Millis{4'999});
  EXPECT_FALSE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 2);
  clock.Advance(Millis{1});
  EXPECT_TRUE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 3);
}

TEST_F(AuthenticatorTest, AnAcceptedTokenIsNotKeptBeyondItsOwnExpiry) {
  const std::string token =
      Jwt("{\"exp\":" + std::to_string(clock.now.ms / 1000 + 10) + ",\"aud\":[\"x\"]}");
  reviewer.AddToken(token, "n1");
  EXPECT_TRUE(authenticator.Authenticate(token));
  clock.Advance(Millis{9'999});
  EXPECT_TRUE(authenticator.Authenticate(token));
  EXPECT_EQ(reviewer.reviews(), 1);
  reviewer.Remove(token);
  clock.Advance(Millis{1});
  EXPECT_FALSE(authenticator.Authenticate(token));
}

TEST_F(AuthenticatorTest, TrustInTheCacheFollowsTheMonotonicClock) {
  reviewer.AddToken("good", "n1");
  EXPECT_TRUE(authenticator.Authenticate("good"));
  clock.now = clock.now - Minutes(600);  // somebody set the wall clock back
  clock.monotonic = clock.monotonic + Seconds(61);
  EXPECT_TRUE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 2);
}

TEST_F(AuthenticatorTest, AServerThatCannotAnswerIsNotARefusalAndIsAskedAgain) {
  reviewer.AddToken("good", "n1");
  for (const auto code : {ErrorCode::kUnavailable, ErrorCode::kForbidden, ErrorCode::kUnauthorized,
                          ErrorCode::kTooManyRequests}) {
    reviewer.FailWith(Error{code, "the server says no", 0});
    const auto identity = authenticator.Authenticate("good");
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, ErrorCode::kUnavailable);
  }
  reviewer.FailWith(std::nullopt);
  EXPECT_TRUE(authenticator.Authenticate("good"));
}

TEST(AuthenticatorCache, IsBoundedAndAFloodOfBadTokensLeavesTheGoodOnes) {
  FakeReviewer reviewer;
  FakeClock clock;
  Authenticator authenticator(
      {.audience = kAudience, .service_account = kAccount, .max_entries = 8}, reviewer, clock);
  reviewer.AddToken("good", "n1");
  EXPECT_TRUE(authenticator.Authenticate("good"));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(authenticator.Authenticate("bad" + std::to_string(i)));
  EXPECT_EQ(reviewer.reviews(), 101);
  EXPECT_TRUE(authenticator.Authenticate("good"));
  EXPECT_EQ(reviewer.reviews(), 101);
  EXPECT_FALSE(authenticator.Authenticate("bad99"));  // the youngest are still known
  EXPECT_EQ(reviewer.reviews(), 101);
  EXPECT_FALSE(authenticator.Authenticate("bad0"));  // the oldest are not
  EXPECT_EQ(reviewer.reviews(), 102);
}

TEST_F(AuthenticatorTest, ManyThreadsGetTheSameAnswers) {
  for (int i = 0; i < 8; ++i) {
    reviewer.AddToken("t" + std::to_string(i), "n" + std::to_string(i));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const std::string n = std::to_string(i % 8);
        const auto identity = authenticator.Authenticate("t" + n);
        ASSERT_TRUE(identity);
        EXPECT_EQ(identity->node, "n" + n);
        EXPECT_FALSE(authenticator.Authenticate("x" + n));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(TokenExpiry, IsReadFromTheClaimsAndNothingElseIsTakenForOne) {
  EXPECT_EQ(TokenExpiry(Jwt("{\"exp\":1800000000}")).value(), (TimePoint{1'800'000'000'000}));
  EXPECT_EQ(TokenExpiry(Jwt("{\"exp\":1800000000.5}")).value(), (TimePoint{1'800'000'000'000}));
  for (const char* claims : {"", "{}", "[]", "{\"exp\":\"1\"}", "{\"exp\":0}", "{\"exp\":-5}",
                             "{\"exp\":1e300}", "{\"exp\":1}}", "nonsense", "{\"exp\":null}"}) {
    EXPECT_FALSE(TokenExpiry(Jwt(claims))) << claims;
  }
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "{\"a\":";
  EXPECT_FALSE(TokenExpiry(Jwt(deep)));
  for (const char* token : {"", ".", "..", "a.b", "a.!.c", "abc"}) {
    EXPECT_FALSE(TokenExpiry(token)) << token;
  }
}

}  // namespace
}  // namespace bimetal::op
