#include "operator/tls/serving_identity.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/base64.h"

namespace bimetal::op {
namespace {

constexpr int kAttempts = 6;  // races lost in a row before we give up
constexpr char kCommonName[] = "bimetal-agent-ca";
constexpr char kCert[] = "tls.crt";
constexpr char kKey[] = "tls.key";
constexpr char kNextCert[] = "next.crt";
constexpr char kNextKey[] = "next.key";
constexpr char kBundle[] = "ca.crt";

// What the Secret holds.
struct Authority {
  KeyPair signer;
  std::optional<KeyPair> next;   // published, signs nothing yet
  std::vector<std::string> old;  // certificates that are still trusted
};

bool LostRace(const Error& error) {
  return error.code == ErrorCode::kConflict || error.code == ErrorCode::kAlreadyExists ||
         error.code == ErrorCode::kNotFound;
}

void SetMeta(api::ObjectMeta* meta, const ServingOptions& options) {
  meta->set_name(options.object_name);
  meta->set_namespace_(options.name_space);
  (*meta->mutable_labels())["app.kubernetes.io/name"] = "bimetal";
  (*meta->mutable_labels())["app.kubernetes.io/component"] = "operator";
}

Result<std::string> Field(const api::Secret& secret, const char* key) {
  const auto found = secret.data().find(key);
  if (found == secret.data().end()) {
    return Fail(ErrorCode::kData, std::string(key) + " is missing");
  }
  auto bytes = Base64Decode(found->second);
  if (!bytes) {
    return Fail(ErrorCode::kData, std::string(key) + ": " + bytes.error().message);
  }
  return bytes;
}

Result<KeyPair> Pair(const api::Secret& secret, const char* cert, const char* key) {
  KeyPair pair;
  BIMETAL_TRY_ASSIGN(pair.cert_pem, Field(secret, cert));
  BIMETAL_TRY_ASSIGN(pair.key_pem, Field(secret, key));
  if (const auto checked = CheckKeyPair(pair); !checked) {
    return Fail(ErrorCode::kData, std::string(cert) + ": " + checked.error().message);
  }
  return pair;
}

Result<Authority> FromSecret(const api::Secret& secret) {
  Authority out;
  BIMETAL_TRY_ASSIGN(out.signer, Pair(secret, kCert, kKey));
  if (secret.data().contains(kNextCert)) {
    BIMETAL_TRY_ASSIGN(out.next, Pair(secret, kNextCert, kNextKey));
  }
  if (secret.data().contains(kBundle)) {
    BIMETAL_TRY_ASSIGN(const std::string text, Field(secret, kBundle));
    auto certs = SplitBundle(text);
    if (!certs) {
      return Fail(ErrorCode::kData, std::string(kBundle) + ": " + certs.error().message);
    }
    for (auto& cert : *certs) {
      const bool known = cert == out.signer.cert_pem || (out.next && cert == out.next->cert_pem);
      if (!known) out.old.push_back(std::move(cert));
    }
  }
  return out;
}

std::string BundleOf(const Authority& authority) {
  std::string out = authority.signer.cert_pem;
  if (authority.next) out += authority.next->cert_pem;
  for (const auto& cert : authority.old) out += cert;
  return out;
}

void ToSecret(const Authority& authority, api::Secret* secret) {
  auto& data = *secret->mutable_data();
  data.clear();
  data[kCert] = Base64Encode(authority.signer.cert_pem);
  data[kKey] = Base64Encode(authority.signer.key_pem);
  if (authority.next) {
    data[kNextCert] = Base64Encode(authority.next->cert_pem);
    data[kNextKey] = Base64Encode(authority.next->key_pem);
  }
  data[kBundle] = Base64Encode(BundleOf(authority));
}

// When something of the authority is due: its renewal, or the turn of the next one.
Result<TimePoint> DueAt(const Authority& authority, Millis propagation) {
  if (authority.next) {
    BIMETAL_TRY_ASSIGN(const TimePoint from, NotBefore(authority.next->cert_pem));
    BIMETAL_TRY_ASSIGN(const TimePoint end, NotAfter(authority.signer.cert_pem));
    return std::min(from + kCertificateBackdate + propagation, end);
  }
  BIMETAL_TRY_ASSIGN(const TimePoint from, NotBefore(authority.signer.cert_pem));
  BIMETAL_TRY_ASSIGN(const TimePoint to, NotAfter(authority.signer.cert_pem));
  return to - Millis{(to - from).v / 3};
}

// Does what is due at `now`. True where something changed.
Result<bool> Advance(Authority& authority, const ServingOptions& options, TimePoint now) {
  bool changed = false;
  BIMETAL_TRY_ASSIGN(TimePoint due, DueAt(authority, options.propagation));
  if (authority.next && now >= due) {
    authority.old.push_back(authority.signer.cert_pem);
    authority.signer = *std::exchange(authority.next, std::nullopt);
    changed = true;
    BIMETAL_TRY_ASSIGN(due, DueAt(authority, options.propagation));
  }
  if (!authority.next && now >= due) {
    BIMETAL_TRY_ASSIGN(KeyPair fresh, MakeCa(kCommonName, now, options.ca_validity));
    BIMETAL_TRY_ASSIGN(const TimePoint end, NotAfter(authority.signer.cert_pem));
    if (now >= end) {  // nobody can trust the old one any more: no reason to wait
      authority.signer = std::move(fresh);
    } else {
      authority.next = std::move(fresh);
    }
    changed = true;
  }
  std::vector<std::string> kept;
  for (auto& cert : authority.old) {
    BIMETAL_TRY_ASSIGN(const TimePoint end, NotAfter(cert));
    if (end > now) kept.push_back(std::move(cert));
  }
  changed = changed || kept.size() != authority.old.size();
  authority.old = std::move(kept);
  return changed;
}

// The authority as stored after this call.
Result<Authority> EnsureAuthority(IdentityStore& store, const ServingOptions& options,
                                  TimePoint now) {
  auto secret = store.GetSecret(options.object_name);
  if (!secret && secret.error().code == ErrorCode::kNotFound) {
    Authority authority;
    BIMETAL_TRY_ASSIGN(authority.signer, MakeCa(kCommonName, now, options.ca_validity));
    api::Secret made;
    SetMeta(made.mutable_metadata(), options);
    made.set_type("kubernetes.io/tls");
    ToSecret(authority, &made);
    BIMETAL_TRY(store.CreateSecret(made));
    return authority;
  }
  if (!secret) return tl::unexpected<Error>(std::move(secret).error());
  auto authority = FromSecret(*secret);
  if (!authority) {
    return tl::unexpected<Error>(WithContext(
        std::move(authority).error(), "secret " + options.name_space + "/" + options.object_name +
                                          " (delete it to have a new authority made)"));
  }
  BIMETAL_TRY_ASSIGN(const bool changed, Advance(*authority, options, now));
  if (changed) {
    ToSecret(*authority, &*secret);
    BIMETAL_TRY(store.UpdateSecret(*secret));
  }
  return authority;
}

// `seen` was read before the Secret was: where a faster replica has published meanwhile, its
// resource version makes our write a conflict instead of a step back.
Status Publish(IdentityStore& store, const ServingOptions& options, Result<api::ConfigMap> seen,
               const std::string& bundle) {
  if (!seen && seen.error().code == ErrorCode::kNotFound) {
    api::ConfigMap made;
    SetMeta(made.mutable_metadata(), options);
    (*made.mutable_data())[kBundle] = bundle;
    return store.CreateConfigMap(made);
  }
  if (!seen) return tl::unexpected<Error>(std::move(seen).error());
  auto& text = (*seen->mutable_data())[kBundle];
  if (text == bundle) return {};
  text = bundle;
  return store.UpdateConfigMap(*seen);
}

// "a.ns.svc" is also reached as "a", "a.ns" and "a.ns.svc.cluster.local".
std::vector<std::string> NamesOf(const std::string& service_name) {
  std::vector<std::string> names = {service_name};
  if (service_name.ends_with(".svc")) {
    names.push_back(service_name + ".cluster.local");
    const std::string short_name = service_name.substr(0, service_name.size() - 4);
    names.push_back(short_name);
    if (const auto dot = short_name.find('.'); dot != std::string::npos) {
      names.push_back(short_name.substr(0, dot));
    }
  }
  return names;
}

Result<ServingIdentity> Issue(const Authority& authority, const ServingOptions& options,
                              TimePoint now) {
  ServingIdentity out;
  BIMETAL_TRY_ASSIGN(out.server, IssueServer(authority.signer, NamesOf(options.service_name), {},
                                             now, options.server_validity));
  out.ca_bundle_pem = BundleOf(authority);
  BIMETAL_TRY_ASSIGN(const TimePoint end, NotAfter(out.server.cert_pem));
  BIMETAL_TRY_ASSIGN(const TimePoint due, DueAt(authority, options.propagation));
  out.renew_at = std::min(end - Millis{(end - now).v / 3}, due);
  return out;
}

}  // namespace

Result<ServingIdentity> EnsureServingIdentity(IdentityStore& store, const ServingOptions& options,
                                              TimePoint now) {
  Error last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto config_map = store.GetConfigMap(options.object_name);
    auto authority = EnsureAuthority(store, options, now);
    if (authority) {
      const auto published = Publish(store, options, std::move(config_map), BundleOf(*authority));
      if (published) return Issue(*authority, options, now);
      last = published.error();
    } else {
      last = std::move(authority).error();
    }
    if (!LostRace(last)) break;
  }
  return tl::unexpected<Error>(WithContext(std::move(last), "serving identity"));
}

}  // namespace bimetal::op
