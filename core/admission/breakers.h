#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"

// When validation stops by itself and asks for a person. Pure: a function of the pool's nodes as
// they are, so that a restart changes nothing and repaired nodes close a breaker by themselves.
namespace bimetal::core::admission {

// One node of a pool.
struct NodeStanding {
  std::string driver_version;
  bool running = false;                 // a validation pod of it is there or being made
  bool open = false;                    // jobs can have at least one of its devices
  bool troubled = false;                // Quarantined or Inconclusive
  std::set<std::string> failed_checks;  // that devices of it have failed and not passed since
  bool operator==(const NodeStanding&) const = default;
};

struct BreakerLimits {
  int max_runs = 16;
  int max_shut_percent = 50;
  int max_same_failures = 3;
};

// A failure that several nodes share.
struct SameFailure {
  std::string driver_version, check;
  int nodes = 0;
  bool operator==(const SameFailure&) const = default;
};

struct BreakerState {
  int nodes = 0, running = 0, shut = 0, troubled = 0;
  int free_slots = 0;
  std::vector<SameFailure> tripped;  // by driver and check
  bool shut_share = false;           // more of the pool is shut than the limit allows
  bool troubled_share = false;       // more of it is troubled, and more than a few nodes are
  bool operator==(const BreakerState&) const = default;

  // A breaker that asks for a person is open.
  bool Open() const { return troubled_share || !tripped.empty(); }
  // What is open, what it stops and the way back; empty where none is.
  std::string Text(const BreakerLimits& limits) const;

  // Why no run at all may start now; empty where one may.
  std::string NoSlot(const BreakerLimits& limits) const;
  // Why no node that passed before may be run under this driver: as long as its devices are shut
  // (Held), or while they are open, where the run itself would shut more (HeldPlanned).
  std::string Held(const std::string& driver_version, const BreakerLimits& limits) const;
  std::string HeldPlanned(const std::string& driver_version, const BreakerLimits& limits) const;
};

// A node that waits for its run is shut but not troubled: a new driver on every node at once is
// proven node by node, as many at a time as there are slots, until the failures themselves stop it.
BreakerState Assess(const std::map<NodeName, NodeStanding>& nodes, const BreakerLimits& limits);

}  // namespace bimetal::core::admission
