#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/state/saved_state.pb.h"
#include "api/agent.pb.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// What the agent knows beyond its devices: the operator's orders and the runs it must deliver, and
// what of them still holds in this boot and under the present fingerprints. Pure: no files, no
// clocks. Loop thread only.
class NodeState {
 public:
  // Runs kept for the operator; one more is refused. The operator takes 16 in one report.
  static constexpr std::size_t kMaxRuns = 64;
  static constexpr std::size_t kMaxRunsPerReport = 16;
  // The same in bytes: what is kept must fit the state file; several runs in one report.
  static constexpr std::size_t kMaxRunBytes = 8UL * 1024UL * 1024UL;
  static constexpr std::size_t kMaxRunBytesPerReport = 2UL * 1024UL * 1024UL;

  // `saved` is what an earlier process left; empty where there is nothing to trust.
  explicit NodeState(SavedState saved);

  // What was just seen: the boot (empty: unknown) and each vendor's fingerprint (empty: unknown).
  // Returns true where saved() changed. In another boot than the saved one every pass, expected run
  // and undelivered run is void; which device plug-ins to serve, and Observe, stay.
  bool Observe(const std::string& boot_id, const std::map<std::string, std::string>& fingerprints);

  // Takes the operator's orders and acknowledgements. Returns true where saved() changed. Orders
  // that come before the boot is known are dropped: they come again with every reply.
  bool Apply(const api::ReportNodeReply& reply, TimePoint now);

  // Null where the operator never spoke of this vendor.
  const api::VendorOrder* OrderOf(std::string_view vendor) const;

  // Runs that AddRun would take now: ordered ones, and those that were taken already.
  std::set<std::string> AcceptableRuns() const;

  // Keeps a complete run until the operator acknowledges it. Puts in the fingerprint: that of the
  // time when the run was ordered and begun, empty where the vendor's has changed since or the run
  // itself names another. A run that is kept or was taken lately is taken again without effect.
  // Errors: kNotFound (no order names it), kInvalid (another vendor's), kTooManyRequests (full).
  Status AddRun(api::ValidationRun run, const std::string& claimed_fingerprint);

  // The runs of the next report, oldest first.
  std::vector<api::ValidationRun> RunsToReport() const;

  // The boot is known and everything in saved() belongs to it.
  bool boot_known() const { return boot_known_; }
  const std::string& boot_id() const { return boot_id_; }
  const SavedState& saved() const { return saved_; }

 private:
  void VoidOldBoot();
  ExpectedRun* FindExpected(std::string_view run);

  SavedState saved_;
  std::string boot_id_;
  bool boot_known_ = false;
  std::map<std::string, std::string> fingerprints_;
  std::deque<std::string> taken_;  // the last runs that were taken, so that a resent one is known
};

}  // namespace bimetal::agent
