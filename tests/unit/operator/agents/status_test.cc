#include "operator/agents/status.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "operator/metrics/metrics.h"

namespace bimetal::op {
namespace {

TEST(GrpcStatus, EachErrorHasTheStatusOfTheSameMeaning) {
  const std::pair<ErrorCode, grpc::StatusCode> kPairs[] = {
      {ErrorCode::kInvalid, grpc::StatusCode::INVALID_ARGUMENT},
      {ErrorCode::kUnauthorized, grpc::StatusCode::UNAUTHENTICATED},
      {ErrorCode::kForbidden, grpc::StatusCode::PERMISSION_DENIED},
      {ErrorCode::kTooManyRequests, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {ErrorCode::kUnavailable, grpc::StatusCode::UNAVAILABLE},
      {ErrorCode::kDeadline, grpc::StatusCode::DEADLINE_EXCEEDED},
      {ErrorCode::kInternal, grpc::StatusCode::INTERNAL},
  };
  for (const auto& [code, expected] : kPairs) {
    const grpc::Status status = ToGrpcStatus(Error{code, "why", 0});
    EXPECT_EQ(status.error_code(), expected);
    EXPECT_EQ(status.error_message(), "why");
  }
}

TEST(GrpcStatus, EveryStatusHasALabelThatTheMetricKnows) {
  for (int code = 0; code <= 16; ++code) {
    const auto label = ResultLabel(static_cast<grpc::StatusCode>(code));
    EXPECT_NE(std::find(kAgentReportResults.begin(), kAgentReportResults.end(), label),
              kAgentReportResults.end())
        << label;
  }
}

}  // namespace
}  // namespace bimetal::op
