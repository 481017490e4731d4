#include "operator/tls/certificates.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>

namespace bimetal::op {
namespace {

const TimePoint kNow = ParseTime("2026-05-01T12:00:00Z").value();
constexpr Millis kYear = Minutes(60 * 24 * 365);

// OpenSSL's own verification, at `now`, as a TLS client does it for `host`; the error's text or "".
std::string Verify(const std::string& cert_pem, const std::string& roots_pem, TimePoint now,
                   const char* host) {
  const auto read = [](BIO* bio) { return PEM_read_bio_X509(bio, nullptr, nullptr, nullptr); };
  X509_STORE* store = X509_STORE_new();
  BIO* roots = BIO_new_mem_buf(roots_pem.data(), static_cast<int>(roots_pem.size()));
  while (X509* root = read(roots)) {
    X509_STORE_add_cert(store, root);
    X509_free(root);
  }
  BIO* leaf_bio = BIO_new_mem_buf(cert_pem.data(), static_cast<int>(cert_pem.size()));
  X509* leaf = read(leaf_bio);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, leaf, nullptr);
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_time(param, now.ms / 1000);
  X509_VERIFY_PARAM_set1_host(param, host, 0);
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
  X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER);
  std::string problem;
  if (X509_verify_cert(context) != 1) {
    problem = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
  }
  X509_STORE_CTX_free(context);
  X509_free(leaf);
  BIO_free_all(leaf_bio);
  BIO_free_all(roots);
  X509_STORE_free(store);
  return problem;
}

TEST(Certificates, AServerCertificateIsTrustedForItsNamesUnderItsAuthorityAlone) {
  const KeyPair ca = MakeCa("test ca", kNow, kYear).value();
  const KeyPair other = MakeCa("test ca", kNow, kYear).value();
  const KeyPair server =
      IssueServer(ca, {"op.ns.svc", "op"}, {"10.0.0.1", "fd00::1"}, kNow, Minutes(60)).value();
  EXPECT_EQ(Verify(server.cert_pem, ca.cert_pem, kNow, "op.ns.svc"), "");
  EXPECT_EQ(Verify(server.cert_pem, ca.cert_pem, kNow, "op"), "");
  EXPECT_EQ(Verify(server.cert_pem, other.cert_pem + ca.cert_pem, kNow, "op"), "");
  EXPECT_NE(Verify(server.cert_pem, ca.cert_pem, kNow, "other.ns.svc"), "");
  EXPECT_NE(Verify(server.cert_pem, other.cert_pem, kNow, "op"), "");
  EXPECT_NE(Verify(server.cert_pem, ca.cert_pem, kNow + Minutes(61), "op"), "");
  EXPECT_EQ(Verify(server.cert_pem, ca.cert_pem, kNow - Minutes(4), "op"), "");
  EXPECT_TRUE(CheckKeyPair(server));
  EXPECT_FALSE(CheckKeyPair({server.cert_pem, ca.key_pem}));
}

TEST(Certificates, ValidityIsWhatWasAskedForAndNeverBeyondTheAuthority) {
  const KeyPair ca = MakeCa("c", kNow, Minutes(60)).value();
  EXPECT_EQ(NotAfter(ca.cert_pem).value(), kNow + Minutes(60));
  EXPECT_EQ(NotBefore(ca.cert_pem).value(), kNow - Minutes(5));
  const KeyPair brief = IssueServer(ca, {"a"}, {}, kNow, Minutes(10)).value();
  EXPECT_EQ(NotAfter(brief.cert_pem).value(), kNow + Minutes(10));
  const KeyPair capped = IssueServer(ca, {"a"}, {}, kNow, kYear).value();
  EXPECT_EQ(NotAfter(capped.cert_pem).value(), kNow + Minutes(60));
  EXPECT_FALSE(IssueServer(ca, {"a"}, {}, kNow + Minutes(60), kYear));
  // Years that need the second form of ASN.1 time.
  const KeyPair far = MakeCa("c", ParseTime("2051-01-01T00:00:00Z").value(), kYear).value();
  EXPECT_EQ(FormatTime(NotAfter(far.cert_pem).value()), "2052-01-01T00:00:00Z");
}

TEST(Certificates, BadNamesAddressesAndAuthoritiesAreRefused) {
  const KeyPair ca = MakeCa("c", kNow, kYear).value();
  const KeyPair leaf = IssueServer(ca, {"a"}, {}, kNow, kYear).value();
  EXPECT_FALSE(IssueServer(ca, {}, {}, kNow, kYear));
  EXPECT_FALSE(IssueServer(ca, {"a,DNS:evil"}, {}, kNow, kYear));
  EXPECT_FALSE(IssueServer(ca, {""}, {}, kNow, kYear));
  EXPECT_FALSE(IssueServer(ca, {"a"}, {"10.0.0"}, kNow, kYear));
  EXPECT_FALSE(IssueServer(ca, std::vector<std::string>(33, "a"), {}, kNow, kYear));
  EXPECT_FALSE(IssueServer(leaf, {"a"}, {}, kNow, kYear));
  EXPECT_FALSE(IssueServer({ca.cert_pem, leaf.key_pem}, {"a"}, {}, kNow, kYear));
  EXPECT_FALSE(IssueServer({"", ""}, {"a"}, {}, kNow, kYear));
  EXPECT_FALSE(MakeCa(std::string(1000, 'x'), kNow, kYear));
  // Nothing is left in OpenSSL's queue that the next call would take for its own.
  EXPECT_TRUE(SplitBundle(ca.cert_pem));
}

TEST(Certificates, ABundleIsSplitAndACorruptOneRefused) {
  const std::string a = MakeCa("a", kNow, kYear)->cert_pem;
  const std::string b = MakeCa("b", kNow, kYear)->cert_pem;
  EXPECT_EQ(SplitBundle(a + "a comment\n" + b).value(), (std::vector<std::string>{a, b}));
  EXPECT_TRUE(SplitBundle("")->empty());
  EXPECT_FALSE(SplitBundle(a + b.substr(0, b.size() / 2)));
  std::string broken = b;
  broken[broken.size() / 2] = '!';
  EXPECT_FALSE(SplitBundle(a + broken));
  EXPECT_FALSE(NotAfter("nonsense"));
  EXPECT_FALSE(NotAfter(std::string(2 << 20, 'x')));
}

TEST(Certificates, AnEncryptedKeyIsAnErrorAndNotAQuestion) {
  constexpr char kEncrypted[] =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGjMF8GCSqGSIb3DQEFDTBSMDEGCSqGSIb3DQEFDDAkBBA=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n";
  const KeyPair ca = MakeCa("c", kNow, kYear).value();
  EXPECT_FALSE(CheckKeyPair({ca.cert_pem, kEncrypted}));
}

TEST(Certificates, NoTwoKeysOrSerialNumbersAreAlike) {
  const KeyPair a = MakeCa("c", kNow, kYear).value();
  const KeyPair b = MakeCa("c", kNow, kYear).value();
  EXPECT_NE(a.key_pem, b.key_pem);
  EXPECT_NE(a.cert_pem, b.cert_pem);
}

TEST(Certificates, Sha256IsTheOneOfTheStandard) {
  EXPECT_EQ(Sha256("abc").substr(0, 4), "\xba\x78\x16\xbf");
  EXPECT_EQ(Sha256("").size(), 32u);
}

}  // namespace
}  // namespace bimetal::op
