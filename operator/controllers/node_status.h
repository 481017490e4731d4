#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/agent.pb.h"
#include "api/gpunode.pb.h"
#include "core/admission/decide.h"
#include "operator/state/store.h"

namespace bimetal::op {

// One vendor's part of a node, as the status shows it. Pointers are borrowed for the call.
struct VendorView {
  core::Vendor vendor = core::Vendor::kNvidia;
  const api::Stack* stack = nullptr;
  const core::admission::Memory* memory = nullptr;
  const core::admission::Decision* decision = nullptr;        // nullptr: none since our start
  const std::vector<api::VerdictStatus>* verdicts = nullptr;  // those that were not Pass
  const std::vector<api::RateStatus>* rates = nullptr;
  std::string run;     // the validation pod that is being made
  std::string pool;    // empty: none
  std::string remark;  // what stands in the way apart from the decision
};

// The status of a GPUNode from what is known, `before` being the last one written (for transition
// times and for vendors without a decision yet). Pure.
api::GPUNodeStatus MakeNodeStatus(const api::GPUNodeStatus& before, const api::Inventory& inventory,
                                  const std::string& boot_id, std::optional<TimePoint> last_report,
                                  const std::vector<VendorView>& vendors, std::int64_t generation,
                                  TimePoint now);

// Equal apart from the time of the last report, which alone is not worth a write.
bool SameNodeStatus(const api::GPUNodeStatus& a, const api::GPUNodeStatus& b);

// The merge patch that puts our taint on (or takes it off), sets our labels and takes off those of
// capabilities that are not among them, guarded by the resource version because spec.taints is one
// list that other controllers write too. Empty where nothing differs.
std::string NodePatch(const NodeRecord& node, bool shut,
                      const std::map<std::string, std::string>& labels);

}  // namespace bimetal::op
