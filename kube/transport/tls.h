#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ssl.hpp>

#include "core/base/result.h"
#include "kube/config/config.h"

namespace bimetal::kube {

// What a TLS connection to the API server is made from, read when it is needed so that rotated
// files count. Thread-safe.
class TlsMaterial {
 public:
  explicit TlsMaterial(const Config& config) : config_(config) {}

  // Sets up one new connection: the cluster's CA alone, TLS 1.2 or later, our certificate. Never
  // throws; what went wrong is kept for TakeError() and the handshake then fails.
  void Configure(boost::asio::ssl::context& context);
  // Why the last Configure() failed, "" if it did not.
  std::string Error() const;
  // Changes when one of the files does.
  std::size_t Stamp() const;

 private:
  Status Apply(boost::asio::ssl::context& context) const;

  const Config config_;
  mutable std::mutex mutex_;
  std::string error_;
};

}  // namespace bimetal::kube
