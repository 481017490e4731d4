#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/gpujob.pb.h"
#include "core/base/time.h"
#include "core/model/job.h"
#include "core/model/job_history.h"
#include "operator/controllers/attempt.h"

// What the operator does next with a job, by its spec and status. Pure.
namespace bimetal::op {

using core::FindCondition;
using core::IsTrue;

// The job has ended; its status never changes again.
inline bool IsFinal(const api::GPUJobStatus& status) {
  return status.state() == "Completed" || status.state() == "Failed";
}

// The row of the current attempt; nullptr where there is none.
api::Attempt* CurrentRow(api::GPUJobStatus& status);

// The vendor of the spec's variant of this name; nullopt where there is none.
std::optional<core::Vendor> VendorOfVariant(const api::GPUJobSpec& spec, const std::string& name);

// The end of an attempt that its pods do not tell of.
AttemptView Ended(AttemptEnd end, std::optional<core::FailureClass> failure, std::string reason,
                  std::string message);

// What follows from the end of an attempt.
struct NextStep {
  bool counts = false;          // towards retry.limit
  bool final = false;           // the job fails; else it waits for its next attempt
  std::string reason, message;  // of the job
  Millis pause;                 // before the next attempt
};

// `failures` are those that counted before this one; `setbacks` the ends in a row, this one
// included, of attempts that never ran or were not counted.
NextStep AfterAttempt(const core::Job& job, const AttemptView& ended, int failures, int setbacks);

// What a budget says of what was spent.
struct BudgetView {
  std::string status;  // True | False | Unknown, as a condition has it
  std::string reason, message;
};
// Compares what was spent with the job's budget; nullopt: it has none.
std::optional<BudgetView> JudgeBudget(const core::Job& job, const api::Usage& usage);

// When limits.startDeadline fails the job; nullopt: never, because it has none or has started.
std::optional<TimePoint> StartDeadline(const core::Job& job, const api::GPUJobStatus& status);
// When limits.maxDuration ends the current attempt. While not all pods run, its clock has not begun
// unless the attempt has been starting for longer than `longest_start`.
std::optional<TimePoint> AttemptDeadline(const core::Job& job, const api::GPUJobStatus& status,
                                         Millis longest_start);
// When limits.ttlAfterFinished deletes the object; nullopt: never, or not ended, or unreadable.
std::optional<TimePoint> ExpiresAt(const api::GPUJob& job, const api::GPUJobStatus& status);

}  // namespace bimetal::op
