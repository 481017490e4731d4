#pragma once

#include <cstdint>
#include <string>

#include "core/validation/fleet.h"
#include "core/validation/floors.h"
#include "tests/bench/truth/classes.h"

namespace bimetal::truth {

// What all cases share. Immutable while they run.
struct Campaign {
  std::string folder;         // of the machines, one a case
  std::string probe_program;  // this program
  std::string nvml;
  core::validation::FloorTable table = core::validation::FloorTable::BuiltIn();
  core::validation::FleetMedians fleet = {};
};

// What came of one case.
struct Outcome {
  bool ok = false;
  bool false_quarantine = false;  // a sound device is quarantined or shut
  bool false_admission = false;   // a device in trouble is open
  bool inconclusive = false;      // the judges could not say, where they should have
  std::string note;               // of what is not ok
};

// One fault of the class, on a node and device that the seed chooses.
Outcome RunFault(const Campaign& campaign, const FaultClass& fault, std::uint64_t seed);

// One sound node, with the rate model's noise: all of it must be open after one run.
Outcome RunHealthy(const Campaign& campaign, std::uint64_t seed);

// The medians of a fleet of sound nodes, as they measure themselves.
core::validation::FleetMedians FleetOf(const Campaign& campaign);

}  // namespace bimetal::truth
