#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/admission/breakers.h"
#include "core/admission/decide.h"

namespace bimetal::op {

// The standing of every node in its pool, what the breakers make of it, and who waits for them.
// Loop thread only.
class NodeBreakers {
 public:
  void SetLimits(const std::string& pool, const core::admission::BreakerLimits& limits);
  const core::admission::BreakerLimits& LimitsOf(const std::string& pool) const;

  void Put(const std::string& pool, const std::string& node,
           const core::admission::NodeStanding& standing);
  void Remove(const std::string& pool, const std::string& node);
  // Counted anew where something has changed.
  const core::admission::BreakerState& StateOf(const std::string& pool) const;

  void SetWaiting(const std::string& pool, const std::string& node,
                  core::admission::Decision::Waits waits);
  // Pools with nodes that wait.
  std::vector<std::string> PoolsThatWait() const;
  // Who is to be decided anew: after a change of a breaker all that wait, else, while there are
  // slots, those that are queued for one.
  std::vector<std::string> TurnOf(const std::string& pool);

 private:
  struct Board {
    core::admission::BreakerLimits limits;
    std::map<NodeName, core::admission::NodeStanding> nodes;
    std::map<std::string, core::admission::Decision::Waits> waiting;
    mutable bool dirty = true;
    mutable core::admission::BreakerState state;
    std::string last_text;  // of the breakers when TurnOf was last asked
    bool last_shut_share = false;
  };
  std::map<std::string, Board> boards_;
};

}  // namespace bimetal::op
