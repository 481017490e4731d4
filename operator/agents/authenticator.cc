#include "operator/agents/authenticator.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "operator/tls/certificates.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kMaxToken = 16 * 1024;
constexpr char kNodeName[] = "authentication.kubernetes.io/node-name";
constexpr char kPodName[] = "authentication.kubernetes.io/pod-name";
constexpr char kPodUid[] = "authentication.kubernetes.io/pod-uid";

tl::unexpected<Error> Refused(std::string message) {
  return Fail(ErrorCode::kUnauthorized, std::move(message));
}

// The single value of an extra field, "" where it is absent or not single.
std::string Extra(const api::UserInfo& user, const char* key) {
  const auto found = user.extra().find(key);
  if (found == user.extra().end() || found->second.items_size() != 1) return "";
  return found->second.items(0);
}

// "system:serviceaccount:NS:NAME" -> NS.
std::string NamespaceOf(const std::string& service_account) {
  const auto name = service_account.rfind(':');
  const auto name_space = name == std::string::npos || name == 0
                              ? std::string::npos
                              : service_account.rfind(':', name - 1);
  if (name_space == std::string::npos) return "";
  return service_account.substr(name_space + 1, name - name_space - 1);
}

}  // namespace

// Answers by the hash of their token, oldest first out. Thread-safe.
struct Authenticator::Cache {
  struct Entry {
    std::string hash;
    Result<Identity> answer;
    Millis until;  // on the monotonic clock
  };
  using Entries = std::list<Entry>;

  // Refused tokens have a list of their own: a flood of them does not push out the good ones.
  struct Half {
    Entries entries;
    std::unordered_map<std::string, Entries::iterator> by_hash;

    const Entry* Find(const std::string& hash, Millis now) {
      const auto found = by_hash.find(hash);
      if (found == by_hash.end()) return nullptr;
      if (found->second->until > now) return &*found->second;
      entries.erase(found->second);
      by_hash.erase(found);
      return nullptr;
    }

    void Put(Entry entry, std::size_t max) {
      if (const auto found = by_hash.find(entry.hash); found != by_hash.end()) {
        entries.erase(found->second);
        by_hash.erase(found);
      }
      while (!entries.empty() && entries.size() >= max) {
        by_hash.erase(entries.front().hash);
        entries.pop_front();
      }
      entries.push_back(std::move(entry));
      by_hash[entries.back().hash] = std::prev(entries.end());
    }
  };

  std::mutex mutex;
  Half accepted, refused;
};

Authenticator::Authenticator(AuthenticatorOptions options, TokenReviewer& reviewer,
                             const Clock& clock)
    : options_(std::move(options)),
      reviewer_(reviewer),
      clock_(clock),
      cache_(std::make_unique<Cache>()) {}

Authenticator::~Authenticator() = default;

namespace {

// Whom the API server says the token is of, or why that is nobody whom we serve.
Result<Identity> IdentityOf(const api::TokenReviewStatus& status,
                            const AuthenticatorOptions& options, TokenReviewer& reviewer) {
  if (!status.authenticated()) {
    return Refused("the token is not accepted by the API server" +
                   (status.error().empty() ? "" : ": " + status.error().substr(0, 256)));
  }
  const auto& audiences = status.audiences();
  if (std::find(audiences.begin(), audiences.end(), options.audience) == audiences.end()) {
    return Refused("the token is not for audience " + options.audience +
                   ": project one with that audience into the agent's pod");
  }
  Identity out;
  out.username = status.user().username();
  if (out.username != options.service_account) {
    return Refused("the token is of " + out.username.substr(0, 256) + ", not of " +
                   options.service_account);
  }
  out.pod = Extra(status.user(), kPodName);
  out.node = Extra(status.user(), kNodeName);
  if (!out.node.empty()) return out;
  const std::string uid = Extra(status.user(), kPodUid);
  if (out.pod.empty() || uid.empty()) {
    return Refused("the token is not bound to a pod: use a projected token of the agent's pod");
  }
  auto node = reviewer.NodeOfPod(NamespaceOf(out.username), out.pod, uid);
  if (!node) {
    if (node.error().code != ErrorCode::kNotFound) {
      return Fail(ErrorCode::kUnavailable, node.error().message);
    }
    return Refused("the token is of a pod that is gone or on no node: " + out.pod.substr(0, 253));
  }
  out.node = *std::move(node);
  return out;
}

// A review that could not be made says nothing of the caller, also where it is the operator itself
// that was refused.
tl::unexpected<Error> NotReviewed(const Error& error) {
  return Fail(ErrorCode::kUnavailable, "the token could not be reviewed: " + error.message);
}

}  // namespace

Result<Identity> Authenticator::Authenticate(const std::string& token) {
  if (token.empty()) return Refused("no bearer token in the metadata \"authorization\"");
  if (token.size() > kMaxToken) return Refused("the token is longer than 16 KiB");
  const std::string hash = Sha256(token);
  const Millis now = clock_.Monotonic();
  {
    const std::lock_guard lock(cache_->mutex);
    if (const auto* entry = cache_->accepted.Find(hash, now)) return entry->answer;
    if (const auto* entry = cache_->refused.Find(hash, now)) return entry->answer;
  }
  auto status = reviewer_.Review(token, options_.audience);
  if (!status) return NotReviewed(status.error());
  Result<Identity> identity = IdentityOf(*status, options_, reviewer_);
  if (!identity && identity.error().code != ErrorCode::kUnauthorized) {
    return NotReviewed(identity.error());
  }

  Millis ttl = identity ? options_.positive_ttl : options_.negative_ttl;
  if (identity) {
    if (const auto expiry = TokenExpiry(token)) ttl = std::min(ttl, *expiry - clock_.Now());
  }
  if (ttl.v > 0) {
    const std::lock_guard lock(cache_->mutex);
    auto& half = identity ? cache_->accepted : cache_->refused;
    half.Put({hash, identity, now + ttl}, options_.max_entries);
  }
  return identity;
}

}  // namespace bimetal::op
