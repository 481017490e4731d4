#include "operator/agents/status.h"

namespace bimetal::op {

grpc::Status ToGrpcStatus(const Error& error) {
  const auto code = [&] {
    switch (error.code) {
      case ErrorCode::kInvalid:
      case ErrorCode::kData:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case ErrorCode::kNotFound:
        return grpc::StatusCode::NOT_FOUND;
      case ErrorCode::kAlreadyExists:
        return grpc::StatusCode::ALREADY_EXISTS;
      case ErrorCode::kConflict:
        return grpc::StatusCode::ABORTED;
      case ErrorCode::kGone:
        return grpc::StatusCode::OUT_OF_RANGE;
      case ErrorCode::kUnauthorized:
        return grpc::StatusCode::UNAUTHENTICATED;
      case ErrorCode::kForbidden:
        return grpc::StatusCode::PERMISSION_DENIED;
      case ErrorCode::kTooManyRequests:
        return grpc::StatusCode::RESOURCE_EXHAUSTED;
      case ErrorCode::kUnavailable:
        return grpc::StatusCode::UNAVAILABLE;
      case ErrorCode::kDeadline:
        return grpc::StatusCode::DEADLINE_EXCEEDED;
      case ErrorCode::kUnsupported:
        return grpc::StatusCode::UNIMPLEMENTED;
      case ErrorCode::kInternal:
        return grpc::StatusCode::INTERNAL;
    }
    return grpc::StatusCode::INTERNAL;
  }();
  return grpc::Status(code, error.message);
}

std::string_view ResultLabel(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return "accepted";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "unauthenticated";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "permission_denied";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "invalid";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "resource_exhausted";
    case grpc::StatusCode::UNAVAILABLE:
      return "unavailable";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "deadline";
    case grpc::StatusCode::CANCELLED:
      return "canceled";
    default:
      return "internal";
  }
}

}  // namespace bimetal::op
