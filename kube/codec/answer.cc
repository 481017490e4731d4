// What the API server's refusals mean to us.
#include <charconv>

#include "api/kubernetes.pb.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"

namespace bimetal::kube {
namespace {

ErrorCode CodeOf(int http_status, std::string_view reason) {
  switch (http_status) {
    case 401:
      return ErrorCode::kUnauthorized;
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 408:
      return ErrorCode::kDeadline;
    case 409:
      return reason == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    case 410:
      return ErrorCode::kGone;
    case 429:
      return ErrorCode::kTooManyRequests;
    case 405:
    case 406:
    case 415:
    case 501:
      return ErrorCode::kUnsupported;
    case 504:
      return ErrorCode::kDeadline;
    default:
      break;
  }
  if (http_status >= 500) return ErrorCode::kUnavailable;
  if (http_status >= 400) return ErrorCode::kInvalid;
  if (http_status >= 300) return ErrorCode::kUnsupported;  // we never follow a redirect
  if (reason == "Expired" || reason == "Gone") return ErrorCode::kGone;
  return ErrorCode::kData;
}

// Whole seconds only; the header's date form is not used by API servers.
std::int64_t ParseSeconds(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size()) return 0;
  return seconds < 0 || seconds > 86'400 ? 0 : seconds;
}

// Enough of a foreign body to recognize it, on one line.
std::string Excerpt(std::string_view body) {
  std::string text;
  for (const char c : body.substr(0, 120)) {
    text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return ReplaceInvalidUtf8(text);
}

}  // namespace

Error ErrorFromAnswer(int http_status, std::string_view content_type, std::string_view retry_after,
                      std::string_view body, std::string_view what) {
  api::ApiStatus status;
  const bool is_status =
      FromJson(body, &status).has_value() && (status.status() == "Failure" || status.code() >= 300);
  const int code = http_status != 0 ? http_status : status.code();
  Error error;
  error.code = CodeOf(code, is_status ? status.reason() : "");
  error.retry_after_ms = ParseSeconds(retry_after) * 1000;
  error.message = std::string(what) + ": ";
  if (!is_status) {
    error.message += "the answer is not from an API server (" + std::to_string(code);
    if (!content_type.empty()) error.message += ", " + Excerpt(content_type);
    error.message += ")";
    if (!body.empty()) error.message += ": " + Excerpt(body);
    return error;
  }
  if (error.retry_after_ms == 0 && status.details().retry_after_seconds() > 0) {
    error.retry_after_ms = std::int64_t{status.details().retry_after_seconds()} * 1000;
  }
  error.message += status.message().empty() ? "refused" : status.message();
  error.message += " (" + std::to_string(code);
  if (!status.reason().empty()) error.message += " " + status.reason();
  error.message += ")";
  return error;
}

}  // namespace bimetal::kube
