#include "kube/transport/token_source.h"

#include "core/base/log.h"
#include "kube/transport/file.h"

namespace bimetal::kube {
namespace {

std::string Trim(std::string text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.erase(text.find_last_not_of(kSpace) + 1);
  text.erase(0, text.find_first_not_of(kSpace));
  return text;
}

// A token goes into a header; anything else in the file must not.
bool IsToken(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return !text.empty();
}

}  // namespace

TokenSource::TokenSource(const Config& config, const Clock& clock, Millis interval)
    : clock_(clock), interval_(interval), file_(config.token_file), token_(config.token) {}

Result<std::string> TokenSource::Get() {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return token_;
  if (!ever_read_ || clock_.Monotonic() - read_at_ >= interval_) Read();
  if (token_.empty()) {
    return Fail(ErrorCode::kUnauthorized, "no token could be read from " + file_);
  }
  return token_;
}

bool TokenSource::Refresh(const std::string& refused) {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) return false;
  Read();
  return !token_.empty() && token_ != refused;
}

void TokenSource::Read() {
  ever_read_ = true;
  read_at_ = clock_.Monotonic();
  const Result<std::string> text = ReadSmallFile(file_);
  const std::string token = text ? Trim(*text) : std::string();
  if (IsToken(token)) {
    token_ = token;
    return;
  }
  // A swap may be under way: look again soon instead of after a whole interval.
  read_at_ = read_at_ - interval_ + Seconds(1);
  Log(LogLevel::kWarning, "token file gives no token", {{"file", file_}});
}

}  // namespace bimetal::kube
