#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/place/policy.h"

// Rules from the literature and from production, as they were published, over a plain scan of all
// nodes: the harness is right where it reproduces their published figures.
namespace bimetal::place {

struct PeerNode {
  std::int64_t cpu = 0, memory = 0;  // idle
  std::vector<std::int32_t> idle;    // milli of each device
  core::placement::DeviceKind kind;
  std::size_t kind_index = 0;
};

// A pod of which the rule thinks that it will be asked for.
struct TypicalPod {
  core::placement::PodShape shape;
  std::vector<bool> kinds;
  double share = 0;
};

struct PeerChoice {
  std::int64_t score = 0;
  int device = -1;  // of a share; -1: the fullest that fits
};

// REQUIRES: the pod fits.
using PeerRule = PeerChoice (*)(const PeerNode& node, const core::placement::PodShape& shape,
                                const std::vector<TypicalPod>& typical);

// nullptr: no such rule.
PeerRule PeerScore(const std::string& name);

std::unique_ptr<Policy> MakePeer(PeerRule rule, const PolicyOptions& options,
                                 const std::vector<core::placement::EngineNode>& nodes,
                                 const core::placement::Mix& mix);

}  // namespace bimetal::place
