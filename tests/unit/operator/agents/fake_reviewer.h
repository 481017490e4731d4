#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "operator/agents/authenticator.h"

namespace bimetal::op {

inline constexpr char kAudience[] = "bimetal-operator";
inline constexpr char kAccount[] = "system:serviceaccount:bimetal-system:bimetal-agent";

// An API server's token reviews: tokens that it knows, as it answers for them. Thread-safe.
class FakeReviewer final : public TokenReviewer {
 public:
  // A token as the kubelet projects it for a pod on `node`.
  void AddToken(const std::string& token, const std::string& node,
                const std::string& account = kAccount, const std::string& audience = kAudience) {
    api::TokenReviewStatus status;
    status.set_authenticated(true);
    status.add_audiences(audience);
    status.mutable_user()->set_username(account);
    auto& extra = *status.mutable_user()->mutable_extra();
    extra["authentication.kubernetes.io/pod-name"].add_items("agent-" + node);
    extra["authentication.kubernetes.io/pod-uid"].add_items("uid-" + node);
    if (!node.empty()) extra["authentication.kubernetes.io/node-name"].add_items(node);
    Set(token, status);
  }

  void Set(const std::string& token, const api::TokenReviewStatus& status) {
    const std::lock_guard lock(mutex_);
    tokens_[token] = status;
  }
  void Remove(const std::string& token) {
    const std::lock_guard lock(mutex_);
    tokens_.erase(token);
  }
  void FailWith(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  void AddPod(const std::string& key, const std::string& node) { pods_[key] = node; }
  int reviews() const {
    const std::lock_guard lock(mutex_);
    return reviews_;
  }

  Result<api::TokenReviewStatus> Review(const std::string& token,
                                        const std::string& audience) override {
    const std::lock_guard lock(mutex_);
    ++reviews_;
    if (error_) return tl::unexpected<Error>(*error_);
    EXPECT_EQ(audience, kAudience);
    if (const auto found = tokens_.find(token); found != tokens_.end()) return found->second;
    api::TokenReviewStatus unknown;
    unknown.set_error("token is expired");
    return unknown;
  }

  Result<std::string> NodeOfPod(const std::string& name_space, const std::string& name,
                                const std::string& uid) override {
    const std::lock_guard lock(mutex_);
    if (error_) return tl::unexpected<Error>(*error_);
    const auto found = pods_.find(name_space + "/" + name + "/" + uid);
    if (found == pods_.end()) return Fail(ErrorCode::kNotFound, "no such pod");
    return found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, api::TokenReviewStatus> tokens_;
  std::map<std::string, std::string> pods_;
  std::optional<Error> error_;
  int reviews_ = 0;
};

// Stands still until told otherwise.
class FakeClock final : public Clock {
 public:
  TimePoint now{1'800'000'000'000};
  Millis monotonic{1'000};
  void Advance(Millis d) {
    now = now + d;
    monotonic = monotonic + d;
  }
  TimePoint Now() const override { return now; }
  Millis Monotonic() const override { return monotonic; }
};

}  // namespace bimetal::op
