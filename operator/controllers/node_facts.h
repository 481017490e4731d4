#pragma once

#include <string>
#include <vector>

#include "api/agent.pb.h"
#include "api/fleet.pb.h"
#include "api/gpunode.pb.h"
#include "core/admission/breakers.h"
#include "core/admission/decide.h"
#include "core/model/fleet.h"
#include "core/validation/judge.h"

// From what agents and administrators say to what admission decides on. Pure.
namespace bimetal::op {

// One vendor's part of a report.
core::admission::Report ReportOf(const api::ReportNodeRequest& request, core::Vendor vendor,
                                 const api::Stack& stack, TimePoint received);

// What a profile (nullptr: the built-in one) demands of a pool's nodes. `word` is what was asked of
// the node (spec.revalidate): one that begins with a level (L0, L1, L2) asks for that level.
core::admission::Policy PolicyOf(const core::Pool* pool, const api::ValidationProfileSpec* profile,
                                 Millis stale_after, const std::string& word);
core::admission::BreakerLimits LimitsOf(const api::ValidationProfileSpec* profile);
// The level that `word` asks for; empty where none.
std::string LevelIn(const std::string& word);

// The devices of one vendor, for the judging of rates.
std::vector<core::validation::DeviceFacts> DeviceFactsOf(const api::Inventory& inventory,
                                                         core::Vendor vendor);

// A run of the agent, judged: verdicts for admission, and what the status keeps of it.
struct JudgedRun {
  core::admission::Run run;
  std::vector<api::VerdictStatus> verdicts;  // all but Pass, the worst first, at most 64
  std::vector<api::RateStatus> rates;        // at most 64
  std::vector<core::validation::NodeRate> node_rates;
};
JudgedRun JudgeRun(const api::ValidationRun& run, const std::string& node,
                   const std::vector<core::validation::DeviceFacts>& devices, bool simulated_node,
                   const core::validation::Yardstick& yardstick);

// The rates that a status has kept, for the fleet's medians after a restart.
std::vector<core::validation::NodeRate> NodeRatesOf(const api::GPUNode& node,
                                                    const api::VendorStatus& vendor);

// The word that asks for a run: spec.revalidate and the annotation.
std::string RevalidateWord(const api::GPUNode* node);

}  // namespace bimetal::op
