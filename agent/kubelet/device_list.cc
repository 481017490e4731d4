#include "agent/kubelet/device_list.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace bimetal::agent {
namespace {

// GPU- and 16 hex digits: the only form that ROCR_VISIBLE_DEVICES takes. An index would be wrong
// inside a container, where the runtime numbers anew the devices that the cgroup lets it open.
bool IsRocrId(const std::string& id) {
  return id.size() == 20 && id.starts_with("GPU-") &&
         id.find_first_not_of("0123456789abcdef", 4) == std::string::npos;
}

std::string Join(const std::vector<std::string>& ids) {
  std::string out;
  for (const auto& id : ids) out += (out.empty() ? "" : ",") + id;
  return out;
}

}  // namespace

void DeviceList::Set(std::vector<PluginDevice> devices, bool simulated) {
  std::sort(devices.begin(), devices.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  const std::lock_guard lock(mutex_);
  simulated_ = simulated;
  if (current_.version != 0 && devices == current_.devices) return;
  current_.devices = std::move(devices);
  ++current_.version;
  changed_.notify_all();
}

DeviceList::Snapshot DeviceList::Get() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

DeviceList::Snapshot DeviceList::WaitForChange(std::uint64_t seen, Millis timeout) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(timeout.v),
                    [&] { return closed_ || current_.version != seen; });
  return current_;
}

void DeviceList::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Result<Grant> DeviceList::Allocate(const std::vector<std::string>& ids) const {
  if (ids.empty()) return Fail(ErrorCode::kInvalid, "no devices were asked for");
  std::vector<std::string> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  Grant grant;
  std::set<std::string> nodes;
  bool all_rocr = true;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string& id = sorted[i];
    if (i > 0 && id == sorted[i - 1]) {
      return Fail(ErrorCode::kInvalid, "device " + id + " was asked for twice");
    }
    const auto at = std::find_if(current_.devices.begin(), current_.devices.end(),
                                 [&](const PluginDevice& device) { return device.id == id; });
    if (at == current_.devices.end()) {
      return Fail(ErrorCode::kNotFound, "device " + id + " is not on this node now");
    }
    if (!at->open) {
      return Fail(ErrorCode::kForbidden,
                  "device " + id + " is shut: it has no pass under the node's present fingerprint");
    }
    nodes.insert(at->nodes.begin(), at->nodes.end());
    all_rocr = all_rocr && IsRocrId(id);
  }
  grant.environment["BIMETAL_DEVICES"] = Join(sorted);
  if (vendor_ == Vendor::kNvidia) {
    grant.environment["NVIDIA_VISIBLE_DEVICES"] = Join(sorted);
  } else if (all_rocr) {
    grant.environment["ROCR_VISIBLE_DEVICES"] = Join(sorted);
  }
  if (simulated_) {
    grant.environment["BIMETAL_SIMULATED"] = "1";
  } else if (vendor_ == Vendor::kAmd) {
    // NVIDIA's files are put in by its container runtime, from NVIDIA_VISIBLE_DEVICES.
    grant.nodes.assign(nodes.begin(), nodes.end());
  }
  return grant;
}

}  // namespace bimetal::agent
