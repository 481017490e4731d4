#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/devices/root_files.h"
#include "agent/devices/source.h"

namespace bimetal::agent {

// One GPU node of /sys/class/kfd/kfd/topology.
struct KfdGpu {
  int node = 0;
  std::uint64_t gpu_id = 0;  // KFD's own number of it; 0: not told
  std::map<std::string, std::uint64_t> properties;
  Reading<std::int64_t> memory_bytes;

  std::optional<std::uint64_t> Get(const std::string& key) const;
  // PCI address of the node; in a partition mode its function is the partition's number.
  // Nothing where the kernel gives no location.
  struct Location {
    std::uint64_t domain = 0;
    std::uint64_t bus = 0;
    std::uint64_t device = 0;
    std::uint64_t function = 0;
    auto operator<=>(const Location&) const = default;
    std::string Address() const;  // 0000:05:00.0
  };
  std::optional<Location> Where() const;
};

struct KfdTopology {
  bool present = false;                 // the folder of nodes could be listed
  std::string why;                      // where not present
  std::vector<KfdGpu> gpus;             // by node number
  std::vector<std::string> unreadable;  // "node 3: permission denied": may be a GPU or a CPU
  bool changed = false;                 // it changed while it was read, twice
};

// A direct link of a node (io_links): to another node, which may be a CPU.
struct KfdLink {
  enum class Type { kPcie, kXgmi, kOther };
  Type type = Type::kOther;
  int to = 0;

  bool operator==(const KfdLink&) const = default;
};

// The direct links of `node`, by their number. Error where one cannot be read: the others would
// look like all.
Reading<std::vector<KfdLink>> ReadKfdLinks(const RootFiles& files, int node);

// Reads the topology; again, once, where it changed meanwhile. `generation` gives the number that
// the kernel raises with every change; by default its file.
using KfdGeneration = std::function<Reading<std::string>()>;
KfdTopology ReadKfd(const RootFiles& files);
KfdTopology ReadKfd(const RootFiles& files, const KfdGeneration& generation);

// The finding TopologyChanged where the topology changed during two reads in a row.
std::optional<Finding> TopologyFinding(const KfdTopology& topology);

// gfx_target_version as the compiler's target: 90402 is gfx942, 90010 gfx90a. Empty for 0.
std::string GfxTarget(std::uint64_t version);

}  // namespace bimetal::agent
