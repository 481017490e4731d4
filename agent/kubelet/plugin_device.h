#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bimetal::agent {

// One device as it is offered to the kubelet. A plain value.
struct PluginDevice {
  std::string id;
  bool open = false;  // offered Healthy; else Unhealthy
  std::optional<std::int64_t> numa_node;
  std::vector<std::string> nodes;  // paths under /dev that a container needs

  bool operator==(const PluginDevice&) const = default;
};

}  // namespace bimetal::agent
