#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::op {

// A certificate (or a chain, own certificate first) and its private key. The key is a secret: never
// logged, never part of an error.
struct KeyPair {
  std::string cert_pem;
  std::string key_pem;
};

// All functions here are thread-safe and pure but for the randomness of keys and serial numbers.
// Keys are P-256.

// Certificates are valid from this long before they were made, for clocks that differ.
inline constexpr Millis kCertificateBackdate = Minutes(5);

// A new self-signed certificate authority. Error kInternal where OpenSSL fails.
Result<KeyPair> MakeCa(std::string_view common_name, TimePoint now, Millis validity);

// A server certificate signed by `ca` for `dns_names` (1 to 32) and `ips` (texts of IPv4 or IPv6
// addresses), at most as long valid as `ca`. Error kInvalid where a name, an address or the CA is
// not one, also where the CA's key is not that of its certificate.
Result<KeyPair> IssueServer(const KeyPair& ca, const std::vector<std::string>& dns_names,
                            const std::vector<std::string>& ips, TimePoint now, Millis validity);

// When the validity of the first certificate in `pem` begins and ends. Error kInvalid.
Result<TimePoint> NotBefore(std::string_view pem);
Result<TimePoint> NotAfter(std::string_view pem);

// The certificates of a bundle, each as PEM, in order. Error kInvalid where one cannot be read;
// text between certificates is ignored.
Result<std::vector<std::string>> SplitBundle(std::string_view pem);

// Error kInvalid where the key is not that of the (first) certificate, or either cannot be read.
Status CheckKeyPair(const KeyPair& pair);

// SHA-256, 32 bytes.
std::string Sha256(std::string_view bytes);

}  // namespace bimetal::op
