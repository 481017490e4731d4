#include "operator/tls/serving_identity.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/base64.h"

namespace bimetal::op {
namespace {

const TimePoint kNow = ParseTime("2026-05-01T12:00:00Z").value();
constexpr Millis kDay = Minutes(60 * 24);

// A Secret and a ConfigMap with resource versions, as the API server keeps them. `before_write` is
// called once before the next write: the place for a rival.
class MemoryStore final : public IdentityStore {
 public:
  std::map<std::string, api::Secret> secrets;
  std::map<std::string, api::ConfigMap> config_maps;
  std::function<void()> before_write;
  std::function<Status(const std::string& call)> fault;
  int writes = 0;

  Result<api::Secret> GetSecret(const std::string& name) override {
    return Get(secrets, name, "get secret");
  }
  Status CreateSecret(const api::Secret& object) override {
    return Create(secrets, object, "create secret");
  }
  Status UpdateSecret(const api::Secret& object) override {
    return Update(secrets, object, "update secret");
  }
  Result<api::ConfigMap> GetConfigMap(const std::string& name) override {
    return Get(config_maps, name, "get configmap");
  }
  Status CreateConfigMap(const api::ConfigMap& object) override {
    return Create(config_maps, object, "create configmap");
  }
  Status UpdateConfigMap(const api::ConfigMap& object) override {
    return Update(config_maps, object, "update configmap");
  }

  std::string Bundle() const {
    const auto found = config_maps.find("bimetal-agent-ca");
    return found == config_maps.end() ? "" : found->second.data().at("ca.crt");
  }

 private:
  Status Fault(const std::string& call) { return fault ? fault(call) : Status(); }
  void Rival() {
    if (auto rival = std::exchange(before_write, nullptr)) rival();
  }
  template <class T>
  Result<T> Get(std::map<std::string, T>& objects, const std::string& name, const char* call) {
    BIMETAL_TRY(Fault(call));
    if (!objects.contains(name)) return Fail(ErrorCode::kNotFound, "no " + name);
    return objects[name];
  }
  template <class T>
  Status Create(std::map<std::string, T>& objects, T object, const char* call) {
    Rival();
    BIMETAL_TRY(Fault(call));
    const std::string name = object.metadata().name();
    if (objects.contains(name)) return Fail(ErrorCode::kAlreadyExists, name);
    return Put(objects, std::move(object));
  }
  template <class T>
  Status Update(std::map<std::string, T>& objects, T object, const char* call) {
    Rival();
    BIMETAL_TRY(Fault(call));
    const std::string name = object.metadata().name();
    if (!objects.contains(name)) return Fail(ErrorCode::kNotFound, name);
    if (objects[name].metadata().resource_version() != object.metadata().resource_version()) {
      return Fail(ErrorCode::kConflict, name);
    }
    return Put(objects, std::move(object));
  }
  template <class T>
  Status Put(std::map<std::string, T>& objects, T object) {
    object.mutable_metadata()->set_resource_version(std::to_string(++writes));
    objects[object.metadata().name()] = std::move(object);
    return {};
  }
};

ServingOptions Options() {
  ServingOptions options;
  options.name_space = "ns";
  options.service_name = "op.ns.svc";
  options.ca_validity = Millis{kDay.v * 300};
  options.server_validity = Millis{kDay.v * 30};
  return options;
}

std::vector<std::string> Certs(const std::string& bundle) { return SplitBundle(bundle).value(); }

TEST(ServingIdentity, TheFirstReplicaMakesAndPublishesTheAuthority) {
  MemoryStore store;
  const auto identity = EnsureServingIdentity(store, Options(), kNow);
  ASSERT_TRUE(identity) << identity.error().message;
  const api::Secret& secret = store.secrets.at("bimetal-agent-ca");
  EXPECT_EQ(secret.type(), "kubernetes.io/tls");
  EXPECT_EQ(secret.metadata().namespace_(), "ns");
  EXPECT_EQ(Base64Decode(secret.data().at("tls.crt")).value(), store.Bundle());
  EXPECT_TRUE(secret.data().contains("tls.key"));
  EXPECT_EQ(identity->ca_bundle_pem, store.Bundle());
  EXPECT_TRUE(CheckKeyPair(identity->server));
  EXPECT_EQ(identity->renew_at, kNow + Millis{kDay.v * 20});
  // The private key of the authority is in the Secret alone.
  EXPECT_EQ(store.Bundle().find("PRIVATE"), std::string::npos);
}

TEST(ServingIdentity, TheNextCallWritesNothing) {
  MemoryStore store;
  const auto first = EnsureServingIdentity(store, Options(), kNow);
  const int writes = store.writes;
  const auto second = EnsureServingIdentity(store, Options(), kNow + kDay);
  ASSERT_TRUE(second);
  EXPECT_EQ(store.writes, writes);
  EXPECT_EQ(second->ca_bundle_pem, first->ca_bundle_pem);
  EXPECT_NE(second->server.cert_pem, first->server.cert_pem);
}

TEST(ServingIdentity, ARivalThatIsFasterAtAnyWriteWins) {
  for (int nth = 0; nth < 2; ++nth) {
    MemoryStore store;
    int write = 0;
    std::function<void()> rival = [&] {
      if (write++ == nth) {
        EXPECT_TRUE(EnsureServingIdentity(store, Options(), kNow));
      } else {
        store.before_write = rival;
      }
    };
    store.before_write = rival;
    const auto identity = EnsureServingIdentity(store, Options(), kNow);
    ASSERT_TRUE(identity) << identity.error().message;
    EXPECT_EQ(Certs(store.Bundle()).size(), 1u);
    EXPECT_EQ(identity->ca_bundle_pem, store.Bundle());
    EXPECT_EQ(Base64Decode(store.secrets.at("bimetal-agent-ca").data().at("tls.crt")).value(),
              store.Bundle());
  }
}

TEST(ServingIdentity, TheAuthorityIsRenewedInTimeAndSignsOnlyAfterItWasPublishedForAnHour) {
  MemoryStore store;
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), kNow));
  const std::string old_ca = store.Bundle();
  TimePoint now = kNow + Millis{kDay.v * 199};
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), now));
  EXPECT_EQ(store.Bundle(), old_ca);

  now = kNow + Millis{kDay.v * 201};
  auto identity = EnsureServingIdentity(store, Options(), now);
  ASSERT_TRUE(identity);
  ASSERT_EQ(Certs(store.Bundle()).size(), 2u);
  EXPECT_EQ(Certs(store.Bundle())[0], old_ca);  // the signer is first
  const std::string new_ca = Certs(store.Bundle())[1];
  EXPECT_EQ(identity->renew_at, now + Minutes(60));
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), now + Minutes(59)));
  EXPECT_EQ(Certs(store.Bundle())[0], old_ca);

  identity = EnsureServingIdentity(store, Options(), now + Minutes(60));
  ASSERT_TRUE(identity);
  EXPECT_EQ(Certs(store.Bundle()), (std::vector<std::string>{new_ca, old_ca}));
  EXPECT_EQ(identity->renew_at, now + Minutes(60) + Millis{kDay.v * 20});

  // The old one leaves the bundle when it has expired.
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), kNow + Millis{kDay.v * 301}));
  EXPECT_EQ(Certs(store.Bundle()), (std::vector<std::string>{new_ca}));
}

TEST(ServingIdentity, AnAuthorityThatExpiredWhileNobodyRanIsReplacedAtOnce) {
  MemoryStore store;
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), kNow));
  const std::string old_ca = store.Bundle();
  const TimePoint late = kNow + Millis{kDay.v * 400};
  const auto identity = EnsureServingIdentity(store, Options(), late);
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(Certs(store.Bundle()).size(), 1u);
  EXPECT_NE(store.Bundle(), old_ca);
  EXPECT_GT(NotAfter(identity->server.cert_pem).value(), late);
}

TEST(ServingIdentity, ADeletedOrForeignConfigMapIsMendedAndItsOtherKeysKept) {
  MemoryStore store;
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), kNow));
  const std::string bundle = store.Bundle();
  store.config_maps.clear();
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), kNow));
  EXPECT_EQ(store.Bundle(), bundle);
  auto& data = *store.config_maps.at("bimetal-agent-ca").mutable_data();
  data["ca.crt"] = "tampered";
  data["note"] = "kept";
  ASSERT_TRUE(EnsureServingIdentity(store, Options(), kNow));
  EXPECT_EQ(store.Bundle(), bundle);
  EXPECT_EQ(store.config_maps.at("bimetal-agent-ca").data().at("note"), "kept");
}

TEST(ServingIdentity, ASecretThatIsNoAuthorityIsReportedAndLeftAlone) {
  const KeyPair ca = MakeCa("x", kNow, kDay).value();
  const std::map<std::string, std::string> kBad[] = {
      {},
      {{"tls.crt", "!"}, {"tls.key", "!"}},
      {{"tls.crt", Base64Encode("text")}, {"tls.key", Base64Encode("text")}},
      {{"tls.crt", Base64Encode(ca.cert_pem)}},
      {{"tls.crt", Base64Encode(ca.cert_pem)},
       {"tls.key", Base64Encode(MakeCa("x", kNow, kDay)->key_pem)}},
  };
  for (const auto& data : kBad) {
    MemoryStore store;
    api::Secret secret;
    secret.mutable_metadata()->set_name("bimetal-agent-ca");
    for (const auto& [key, value] : data) (*secret.mutable_data())[key] = value;
    ASSERT_TRUE(store.CreateSecret(secret));
    const auto identity = EnsureServingIdentity(store, Options(), kNow);
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, ErrorCode::kData);
    EXPECT_NE(identity.error().message.find("secret ns/bimetal-agent-ca"), std::string::npos);
    EXPECT_NE(identity.error().message.find("tls."), std::string::npos) << identity.error().message;
    EXPECT_EQ(identity.error().message.find("PRIVATE"), std::string::npos);
    EXPECT_EQ(store.writes, 1);
  }
}

TEST(ServingIdentity, AServerThatSaysNoIsPassedOn) {
  for (const char* call : {"get secret", "create secret", "get configmap", "create configmap"}) {
    MemoryStore store;
    store.fault = [&](const std::string& what) -> Status {
      if (what == call) return Fail(ErrorCode::kForbidden, "forbidden");
      return {};
    };
    const auto identity = EnsureServingIdentity(store, Options(), kNow);
    ASSERT_FALSE(identity) << call;
    EXPECT_EQ(identity.error().code, ErrorCode::kForbidden);
  }
}

TEST(ServingIdentity, EndlessConflictsEnd) {
  MemoryStore store;
  store.fault = [](const std::string& what) -> Status {
    if (what == "create secret") return Fail(ErrorCode::kAlreadyExists, "exists");
    return {};
  };
  const auto identity = EnsureServingIdentity(store, Options(), kNow);
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code, ErrorCode::kAlreadyExists);
}

}  // namespace
}  // namespace bimetal::op
