#pragma once

#include <mutex>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/config/config.h"

namespace bimetal::kube {

// The bearer token, read again from its file at least every interval (the kubelet rotates it). A
// file that is unreadable or empty for a moment leaves the last token in use. Thread-safe.
class TokenSource {
 public:
  // `clock` must outlive the source.
  TokenSource(const Config& config, const Clock& clock, Millis interval);

  // The token, "" where none is configured. Error: kUnauthorized where the file never gave one.
  Result<std::string> Get();
  // Reads the file now; true if the token is another than `refused`. After a 401.
  bool Refresh(const std::string& refused);

 private:
  void Read();  // REQUIRES mutex_

  const Clock& clock_;
  const Millis interval_;
  const std::string file_;
  std::mutex mutex_;
  std::string token_;
  Millis read_at_;
  bool ever_read_ = false;
};

}  // namespace bimetal::kube
