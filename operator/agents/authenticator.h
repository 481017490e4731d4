#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "api/kubernetes.pb.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::kube {
class Client;
}  // namespace bimetal::kube

namespace bimetal::op {

// Who called.
struct Identity {
  std::string username;
  std::string node;
  std::string pod;  // empty where the server does not say
};

// Asks the API server. Thread-safe; calls block.
class TokenReviewer {
 public:
  virtual ~TokenReviewer() = default;
  // The status of a TokenReview of `token` for `audience`.
  virtual Result<api::TokenReviewStatus> Review(const std::string& token,
                                                const std::string& audience) = 0;
  // The node that a live pod of this uid is bound to, for servers that do not put it into the
  // token. Error kNotFound where there is no such pod.
  virtual Result<std::string> NodeOfPod(const std::string& name_space, const std::string& name,
                                        const std::string& uid) = 0;
};

// `client` must outlive it.
std::unique_ptr<TokenReviewer> MakeKubeTokenReviewer(kube::Client& client);

struct AuthenticatorOptions {
  std::string audience = "bimetal-operator";
  std::string service_account;  // "system:serviceaccount:<ns>:bimetal-agent"
  Millis positive_ttl = Seconds(60);
  Millis negative_ttl = Seconds(5);
  std::size_t max_entries = 8192;  // accepted and refused tokens are bounded by this each
};

// Turns a bearer token into the node that it speaks for. Answers are kept by the token's SHA-256
// (the token itself is never stored), an accepted one never beyond the token's own expiry.
// Thread-safe.
class Authenticator {
 public:
  // `reviewer` and `clock` must outlive it.
  Authenticator(AuthenticatorOptions options, TokenReviewer& reviewer, const Clock& clock);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  // Blocks for a review where the answer is not cached. Error kUnauthorized says what is wrong with
  // the token and how to mend it. Error kUnavailable where the API server could not be asked; that
  // is not cached.
  Result<Identity> Authenticate(const std::string& token);

 private:
  struct Cache;
  AuthenticatorOptions options_;
  TokenReviewer& reviewer_;
  const Clock& clock_;
  std::unique_ptr<Cache> cache_;
};

// The `exp` of a JSON Web Token, which the caller has had verified; kData where it has none.
Result<TimePoint> TokenExpiry(std::string_view token);

}  // namespace bimetal::op
