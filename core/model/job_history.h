#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "api/gpujob.pb.h"
#include "core/base/time.h"
#include "core/model/job.h"

// What a job's status says of its past, and so to its next start. The status is the only memory:
// the same answers come after a restart of the operator. Pure.
namespace bimetal::core {

// How long a node on which an attempt failed is avoided, where the rule says RetryElsewhere, and
// where the stock scheduler would not have a pod.
inline constexpr Millis kAvoidAfterFailure = Minutes(60);
inline constexpr Millis kAvoidAfterRefusal = Minutes(10);

// The class of this name; nullopt for any other text.
std::optional<FailureClass> ParseFailureClass(std::string_view text);
// nullptr where the status has none of this type.
const api::Condition* FindCondition(const api::GPUJobStatus& status, std::string_view type);
// It has one, and it is True.
bool IsTrue(const api::GPUJobStatus& status, std::string_view type);
// The pods of an attempt that has ended have run, as far as its row tells.
bool HasRun(const api::Attempt& row);

// Nodes that the next attempt must not use, sorted; `until`: when the first of them counts again.
struct AvoidList {
  std::vector<NodeName> nodes;
  std::optional<TimePoint> until;
};
// See AvoidList; `now` is the time of the decision.
AvoidList NodesToAvoid(const Job& job, const api::GPUJobStatus& status, TimePoint now);

// Indexes of the variants that the next attempt may take: all before the first that ran; then what
// selection.switchOnRestart allows beside the vendor that ran last.
std::vector<std::size_t> AllowedVariants(const Job& job, const api::GPUJobStatus& status);

// Since when it has waited for its next start: its creation, the end of its last attempt, or of a
// suspension.
TimePoint WaitingSince(const Job& job, const api::GPUJobStatus& status);
// Since when every pod of the current attempt runs; nullopt where not all do.
std::optional<TimePoint> RunningSince(const api::GPUJobStatus& status);

// The job as a scheduling cycle shall see it: with what its attempts so far mean for the next one.
// Its variants are the allowed ones alone.
Job AsWished(const Job& job, const api::GPUJobStatus& status, TimePoint now);

}  // namespace bimetal::core
