#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/devices/source.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// What the kubelet says that pods hold now. A plain value.
struct PodUse {
  // Devices as the plug-ins name them, without "::<replica>", and the pod ("namespace/name") that
  // holds each; where several share one, the first of them by name.
  std::map<std::string, std::string> device_ids;
  std::set<std::string> claim_drivers;  // drivers of claims that pods hold: gpu.nvidia.com
};

// Asks the kubelet's pod-resources API (v1, List) on the Unix socket `socket`; blocks at most
// `deadline`. Thread-safe. Errors: kNotFound (no such socket), kUnavailable (no answer in time),
// kUnsupported (a kubelet without it), kData.
Result<PodUse> ReadPodUse(const std::string& socket, Millis deadline);

// Whether a pod holds `device`: by its id, or, as AMD's own plug-in names whole GPUs and first
// partitions, by its PCI address. Nothing where that cannot be told: a claim of the vendor's driver
// names devices in a way of its own, and so does AMD's plug-in for further partitions.
std::optional<bool> IsInUse(const PodUse& use, const Device& device);

// The pod that holds `device`, "namespace/name"; empty: none, or it cannot be told (see IsInUse).
std::string HolderOf(const PodUse& use, const Device& device);

}  // namespace bimetal::agent
