#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/placement/engine.h"
#include "core/placement/mix.h"

// The public trace of machines and pods, as the protocol of docs/explanation/placement.md reads it.
namespace bimetal::place {

struct TracePod {
  std::string name;
  core::placement::PodShape shape;
  std::optional<std::int64_t> run_seconds;  // nothing where it never ran
};

struct Trace {
  std::vector<core::placement::EngineNode> nodes;
  std::vector<TracePod> pods;  // by name
};

// Reads the nodes and the list `list` ("default", "gpuspec33") in `folder`.
// Error kNotFound or kData names the file and the line.
Result<Trace> LoadTrace(const std::filesystem::path& folder, const std::string& list);

// Two vendors: every second G2 and G3 node is of the other vendor; by a hash of its name 40 % of
// the pods with devices want the first vendor alone and 20 % the second alone.
void MakeTwoVendors(Trace* trace);

// Milli-devices of all nodes.
std::int64_t CapacityOf(const std::vector<core::placement::EngineNode>& nodes);

// How many pods of each shape `pods` has.
core::placement::Mix MixOf(const std::vector<TracePod>& pods);

}  // namespace bimetal::place
