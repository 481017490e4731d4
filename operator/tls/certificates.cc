#include "operator/tls/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

namespace bimetal::op {
namespace {

constexpr std::size_t kMaxNames = 32;
constexpr std::size_t kMaxPemBytes = std::size_t{1} << 20;

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* p) const { Free(p); }
};
template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Freer<T, Free>>;
using OwnedCert = Owned<X509, X509_free>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using OwnedExtension = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using OwnedNumber = Owned<BIGNUM, BN_free>;
struct BioFreer {
  void operator()(BIO* p) const { BIO_free_all(p); }
};
using OwnedBio = std::unique_ptr<BIO, BioFreer>;

// What OpenSSL says of its last failure; also empties its queue, which later calls would misread.
tl::unexpected<Error> OpenSslFailed(ErrorCode code, std::string what) {
  const unsigned long error = ERR_peek_last_error();
  if (error != 0) {
    std::array<char, 256> text{};
    ERR_error_string_n(error, text.data(), text.size());
    what += ": " + std::string(text.data());
  }
  ERR_clear_error();
  return Fail(code, std::move(what));
}

tl::unexpected<Error> Internal(const char* what) {
  return OpenSslFailed(ErrorCode::kInternal, what);
}

// A password callback that has none: without it OpenSSL would ask on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

OwnedBio Reader(std::string_view text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

Result<OwnedCert> ReadCert(std::string_view pem) {
  if (pem.size() > kMaxPemBytes) return Fail(ErrorCode::kInvalid, "certificate is too large");
  const OwnedBio bio = Reader(pem);
  OwnedCert cert(bio ? PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr) : nullptr);
  if (!cert) return OpenSslFailed(ErrorCode::kInvalid, "not a certificate in PEM form");
  return cert;
}

Result<OwnedKey> ReadKey(std::string_view pem) {
  if (pem.size() > kMaxPemBytes) return Fail(ErrorCode::kInvalid, "private key is too large");
  const OwnedBio bio = Reader(pem);
  OwnedKey key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr) : nullptr);
  if (!key) return OpenSslFailed(ErrorCode::kInvalid, "not a private key in PEM form");
  return key;
}

Result<std::string> WriteCert(X509* cert) {
  const OwnedBio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), cert) != 1) return Internal("writing a certificate");
  return TextOf(bio.get());
}

Result<std::string> WriteKey(EVP_PKEY* key) {
  const OwnedBio bio(BIO_new(BIO_s_mem()));
  if (!bio ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Internal("writing a private key");
  }
  return TextOf(bio.get());
}

Result<OwnedKey> NewKey() {
  OwnedKey key(EVP_EC_gen("P-256"));
  if (!key) return Internal("making a P-256 key");
  return key;
}

Status SetSerial(X509* cert) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return Internal("drawing a serial number");
  }
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive, never 0
  const OwnedNumber number(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
  if (!number || !BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(cert))) {
    return Internal("setting a serial number");
  }
  return {};
}

Status SetValidity(X509* cert, TimePoint from, TimePoint to) {
  if (!ASN1_TIME_set(X509_getm_notBefore(cert), static_cast<std::time_t>(from.ms / 1000)) ||
      !ASN1_TIME_set(X509_getm_notAfter(cert), static_cast<std::time_t>(to.ms / 1000))) {
    return Internal("setting a certificate's validity");
  }
  return {};
}

Status SetCommonName(X509* cert, std::string_view name) {
  X509_NAME* subject = X509_get_subject_name(cert);
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, bytes, static_cast<int>(name.size()),
                                 -1, 0) != 1) {
    return OpenSslFailed(ErrorCode::kInvalid, "common name of a certificate");
  }
  return {};
}

Status AddExtension(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  const OwnedExtension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (!extension || X509_add_ext(cert, extension.get(), -1) != 1) {
    return OpenSslFailed(ErrorCode::kInvalid, "certificate extension " + value);
  }
  return {};
}

// Everything that both kinds of certificate have, but for extensions and signature.
Result<OwnedCert> NewCert(EVP_PKEY* key, TimePoint from, TimePoint to) {
  OwnedCert cert(X509_new());
  if (!cert || X509_set_version(cert.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(cert.get(), key) != 1) {
    return Internal("making a certificate");
  }
  BIMETAL_TRY(SetSerial(cert.get()));
  BIMETAL_TRY(SetValidity(cert.get(), from, to));
  return cert;
}

Result<TimePoint> TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (!time || ASN1_TIME_to_tm(time, &parts) != 1) {
    return OpenSslFailed(ErrorCode::kInvalid, "certificate's validity");
  }
  return TimePoint{static_cast<std::int64_t>(timegm(&parts)) * 1000};
}

bool IsDnsName(std::string_view name) {
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '*';
  });
}

// The value of subjectAltName. Names are checked first: the text is a little language of its own.
Result<std::string> AlternativeNames(const std::vector<std::string>& dns_names,
                                     const std::vector<std::string>& ips) {
  if (dns_names.size() + ips.size() > kMaxNames || dns_names.empty()) {
    return Fail(ErrorCode::kInvalid, "a server certificate needs 1 to 32 names");
  }
  std::string out;
  for (const auto& name : dns_names) {
    if (!IsDnsName(name)) return Fail(ErrorCode::kInvalid, "not a DNS name: \"" + name + "\"");
    out += (out.empty() ? "DNS:" : ",DNS:") + name;
  }
  for (const auto& ip : ips) {
    ASN1_OCTET_STRING* address = a2i_IPADDRESS(ip.c_str());
    if (!address) {
      ERR_clear_error();
      return Fail(ErrorCode::kInvalid, "not an IP address: \"" + ip + "\"");
    }
    ASN1_OCTET_STRING_free(address);
    out += ",IP:" + ip;
  }
  return out;
}

// What a client that reads the chain of a bundle needs of an issuer.
Status CheckIssuer(X509* cert, EVP_PKEY* key) {
  if (X509_check_private_key(cert, key) != 1) {
    ERR_clear_error();
    return Fail(ErrorCode::kInvalid, "the authority's key is not that of its certificate");
  }
  if (X509_check_ca(cert) != 1) {
    return Fail(ErrorCode::kInvalid, "the issuer's certificate is not that of an authority");
  }
  return {};
}

}  // namespace

Result<KeyPair> MakeCa(std::string_view common_name, TimePoint now, Millis validity) {
  BIMETAL_TRY_ASSIGN(const OwnedKey key, NewKey());
  BIMETAL_TRY_ASSIGN(const OwnedCert cert,
                     NewCert(key.get(), now - kCertificateBackdate, now + validity));
  BIMETAL_TRY(SetCommonName(cert.get(), common_name));
  if (X509_set_issuer_name(cert.get(), X509_get_subject_name(cert.get())) != 1) {
    return Internal("naming an authority");
  }
  BIMETAL_TRY(
      AddExtension(cert.get(), cert.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  BIMETAL_TRY(AddExtension(cert.get(), cert.get(), NID_key_usage, "critical,keyCertSign,cRLSign"));
  BIMETAL_TRY(AddExtension(cert.get(), cert.get(), NID_subject_key_identifier, "hash"));
  if (X509_sign(cert.get(), key.get(), EVP_sha256()) == 0) return Internal("signing an authority");
  KeyPair pair;
  BIMETAL_TRY_ASSIGN(pair.cert_pem, WriteCert(cert.get()));
  BIMETAL_TRY_ASSIGN(pair.key_pem, WriteKey(key.get()));
  return pair;
}

Result<KeyPair> IssueServer(const KeyPair& ca, const std::vector<std::string>& dns_names,
                            const std::vector<std::string>& ips, TimePoint now, Millis validity) {
  BIMETAL_TRY_ASSIGN(const OwnedCert issuer, ReadCert(ca.cert_pem));
  BIMETAL_TRY_ASSIGN(const OwnedKey issuer_key, ReadKey(ca.key_pem));
  BIMETAL_TRY(CheckIssuer(issuer.get(), issuer_key.get()));
  BIMETAL_TRY_ASSIGN(const std::string names, AlternativeNames(dns_names, ips));
  BIMETAL_TRY_ASSIGN(const TimePoint ca_from, TimeOf(X509_get0_notBefore(issuer.get())));
  BIMETAL_TRY_ASSIGN(const TimePoint ca_to, TimeOf(X509_get0_notAfter(issuer.get())));
  if (now >= ca_to) return Fail(ErrorCode::kInvalid, "the authority has expired");

  BIMETAL_TRY_ASSIGN(const OwnedKey key, NewKey());
  BIMETAL_TRY_ASSIGN(const OwnedCert cert,
                     NewCert(key.get(), std::max(now - kCertificateBackdate, ca_from),
                             std::min(now + validity, ca_to)));
  // A common name holds 64 bytes; clients read the alternative names.
  BIMETAL_TRY(SetCommonName(cert.get(), std::string_view(dns_names.front()).substr(0, 64)));
  if (X509_set_issuer_name(cert.get(), X509_get_subject_name(issuer.get())) != 1) {
    return Internal("naming an issuer");
  }
  X509* const out = cert.get();
  BIMETAL_TRY(AddExtension(out, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  BIMETAL_TRY(AddExtension(out, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  BIMETAL_TRY(AddExtension(out, issuer.get(), NID_ext_key_usage, "serverAuth"));
  BIMETAL_TRY(AddExtension(out, issuer.get(), NID_subject_key_identifier, "hash"));
  BIMETAL_TRY(AddExtension(out, issuer.get(), NID_authority_key_identifier, "keyid"));
  BIMETAL_TRY(AddExtension(out, issuer.get(), NID_subject_alt_name, names));
  if (X509_sign(out, issuer_key.get(), EVP_sha256()) == 0) {
    return Internal("signing a certificate");
  }
  KeyPair pair;
  BIMETAL_TRY_ASSIGN(pair.cert_pem, WriteCert(out));
  BIMETAL_TRY_ASSIGN(pair.key_pem, WriteKey(key.get()));
  return pair;
}

Result<TimePoint> NotBefore(std::string_view pem) {
  BIMETAL_TRY_ASSIGN(const OwnedCert cert, ReadCert(pem));
  return TimeOf(X509_get0_notBefore(cert.get()));
}

Result<TimePoint> NotAfter(std::string_view pem) {
  BIMETAL_TRY_ASSIGN(const OwnedCert cert, ReadCert(pem));
  return TimeOf(X509_get0_notAfter(cert.get()));
}

Result<std::vector<std::string>> SplitBundle(std::string_view pem) {
  if (pem.size() > kMaxPemBytes) return Fail(ErrorCode::kInvalid, "bundle is too large");
  const OwnedBio bio = Reader(pem);
  if (!bio) return Internal("reading a bundle");
  std::vector<std::string> out;
  while (true) {
    const OwnedCert cert(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (!cert) break;
    BIMETAL_TRY_ASSIGN(out.emplace_back(), WriteCert(cert.get()));
  }
  const unsigned long error = ERR_peek_last_error();
  // "No start line" is how OpenSSL says that nothing more follows.
  if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE) {
    return OpenSslFailed(ErrorCode::kInvalid, "a certificate of the bundle cannot be read");
  }
  ERR_clear_error();
  return out;
}

Status CheckKeyPair(const KeyPair& pair) {
  BIMETAL_TRY_ASSIGN(const OwnedCert cert, ReadCert(pair.cert_pem));
  BIMETAL_TRY_ASSIGN(const OwnedKey key, ReadKey(pair.key_pem));
  if (X509_check_private_key(cert.get(), key.get()) != 1) {
    ERR_clear_error();
    return Fail(ErrorCode::kInvalid, "the private key is not that of the certificate");
  }
  return {};
}

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

}  // namespace bimetal::op
