#include <algorithm>

#include "kube/leader/leader.h"

namespace bimetal::kube {
namespace {

// Lost by time alone: others may hold the lease now, whatever we can still read.
LeaderState DropIfLate(LeaderState state, Millis now, const LeaderConfig& config) {
  if (state.leading && now - state.renewed_at >= config.renew_deadline) state.leading = false;
  return state;
}

Millis DurationOf(const api::Lease& lease, const LeaderConfig& config) {
  const std::int32_t seconds = lease.spec().lease_duration_seconds();
  return seconds > 0 ? Seconds(seconds) : config.lease_duration;
}

}  // namespace

LeaderStep Step(LeaderState state, const Result<std::optional<api::Lease>>& lease, Millis now,
                const LeaderConfig& config) {
  state = DropIfLate(std::move(state), now, config);
  if (!lease) return {std::move(state), LeaderAction::kWait};
  if (!lease->has_value()) {
    state.holder.clear();
    state.leading = false;  // somebody deleted the lease: we hold nothing
    return {std::move(state), LeaderAction::kCreate};
  }
  const api::Lease& seen = **lease;
  const std::string& version = seen.metadata().resource_version();
  if (version != state.observed_version || seen.spec().holder_identity() != state.holder) {
    state.observed_version = version;
    state.observed_at = now;
    state.holder = seen.spec().holder_identity();
  }
  if (state.holder == config.identity) {
    // Ours, or that of our process before a restart. Renewing is what makes us lead.
    return {std::move(state), state.leading ? LeaderAction::kRenew : LeaderAction::kAcquire};
  }
  state.leading = false;
  const bool free = state.holder.empty() || now - state.observed_at >= DurationOf(seen, config);
  return {std::move(state), free ? LeaderAction::kAcquire : LeaderAction::kWait};
}

LeaderState AfterWrite(LeaderState state, const Result<api::Lease>& written, Millis begun,
                       Millis now, const LeaderConfig& config) {
  if (!written) {
    // A conflict says that another has written; any other failure leaves open whether ours arrived.
    // Neither makes us a leader, and a leader stays one until its deadline.
    return DropIfLate(std::move(state), now, config);
  }
  state.leading = written->spec().holder_identity() == config.identity;
  state.holder = written->spec().holder_identity();
  state.observed_version = written->metadata().resource_version();
  state.observed_at = now;
  // Counted from the sending: others count from when they see it, which is later.
  state.renewed_at = begun;
  return DropIfLate(std::move(state), now, config);
}

}  // namespace bimetal::kube
