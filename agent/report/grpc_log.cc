#include "agent/report/grpc_log.h"

#include <grpc/support/log.h>

#include "core/base/log.h"

namespace bimetal::agent {
namespace {

// A failed connection is told once by the caller; gRPC tells it for every attempt.
void WriteLine(gpr_log_func_args* args) {
  Log(LogLevel::kDebug, "grpc",
      {{"detail", args->message},
       {"severity", args->severity == GPR_LOG_SEVERITY_ERROR ? "error" : "info"}});
}

}  // namespace

void LogGrpcAsJson() { gpr_set_log_function(WriteLine); }

}  // namespace bimetal::agent
