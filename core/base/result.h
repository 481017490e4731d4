#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace bimetal {

// Why an operation could not be done. The set follows what a Kubernetes API server and the
// operating system can answer; policy refusals are never errors but part of a decision's value.
enum class ErrorCode {
  kInvalid,          // the caller's value is wrong; the message names the field
  kNotFound,         // the object does not exist
  kAlreadyExists,    // an object of that name exists
  kConflict,         // the object changed meanwhile (409); read again and retry
  kGone,             // the resource version is too old (410); list again
  kUnauthorized,     // who we are was not accepted (401)
  kForbidden,        // we may not do this (403)
  kTooManyRequests,  // slow down (429); see retry_after_ms
  kUnavailable,      // no answer, connection lost or 5xx; retry with backoff
  kDeadline,         // no answer in time
  kUnsupported,      // this device, library or server cannot do it
  kData,             // an answer or a file is not what it must be (corrupt, truncated)
  kInternal,         // a bug of ours
};

// CamelCase name of a code, for logs and metrics labels.
std::string_view ErrorCodeName(ErrorCode code);

// An expected failure as a value: code, what went wrong on which object, and the server's wish.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::int64_t retry_after_ms = 0;  // 0: the server named no time
};

// True where the same request may succeed later without anybody changing anything.
bool IsRetriable(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;

// A Result without a value.
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), 0});
}

// Puts `context` before the message: "reading /x: permission denied".
Error WithContext(Error error, std::string_view context);

// Ends the process with a message: an invariant of ours is broken.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace bimetal

#define BIMETAL_CONCAT_INNER(a, b) a##b
#define BIMETAL_CONCAT(a, b) BIMETAL_CONCAT_INNER(a, b)

// BIMETAL_TRY(expr): returns the error of `expr` to our caller, drops its value.
#define BIMETAL_TRY(expr)                                                               \
  do {                                                                                  \
    if (auto bimetal_try_result = (expr); !bimetal_try_result) {                        \
      return ::tl::unexpected<::bimetal::Error>(std::move(bimetal_try_result).error()); \
    }                                                                                   \
  } while (false)

// BIMETAL_TRY_ASSIGN(auto x, expr): binds the value of `expr` or returns its error.
#define BIMETAL_TRY_ASSIGN(lhs, expr) \
  BIMETAL_TRY_ASSIGN_INNER(BIMETAL_CONCAT(bimetal_try_, __COUNTER__), lhs, expr)
#define BIMETAL_TRY_ASSIGN_INNER(tmp, lhs, expr)                               \
  auto tmp = (expr);                                                           \
  if (!tmp) return ::tl::unexpected<::bimetal::Error>(std::move(tmp).error()); \
  lhs = std::move(tmp).value()

// BIMETAL_CHECK(condition): an invariant of ours; the process ends where it does not hold.
#define BIMETAL_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::bimetal::CheckFailed(__FILE__, __LINE__, #condition))
