#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "core/base/result.h"

namespace bimetal::op {

// The gRPC status of the same meaning. Not for other rooms: it names gRPC's types.
grpc::Status ToGrpcStatus(const Error& error);

// The label of kAgentReportResults for a failed call.
std::string_view ResultLabel(grpc::StatusCode code);

}  // namespace bimetal::op
