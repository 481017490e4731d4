#include "core/base/result.h"

#include <cstdio>
#include <cstdlib>

namespace bimetal {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "Invalid";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kGone:
      return "Gone";
    case ErrorCode::kUnauthorized:
      return "Unauthorized";
    case ErrorCode::kForbidden:
      return "Forbidden";
    case ErrorCode::kTooManyRequests:
      return "TooManyRequests";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kDeadline:
      return "Deadline";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kData:
      return "Data";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Internal";
}

bool IsRetriable(const Error& error) {
  switch (error.code) {
    case ErrorCode::kConflict:
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadline:
      return true;
    default:
      return false;
  }
}

Error WithContext(Error error, std::string_view context) {
  error.message = std::string(context) + ": " + error.message;
  return error;
}

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace bimetal
