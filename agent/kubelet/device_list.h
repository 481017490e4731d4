#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "agent/devices/source.h"
#include "agent/kubelet/plugin_device.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// What a container gets with its devices.
struct Grant {
  std::map<std::string, std::string> environment;
  std::vector<std::string> nodes;  // under /dev, same path in the container, sorted
};

// The devices that one plug-in offers now. Thread-safe.
class DeviceList {
 public:
  explicit DeviceList(Vendor vendor) : vendor_(vendor) {}

  void Set(std::vector<PluginDevice> devices, bool simulated);

  struct Snapshot {
    std::uint64_t version = 0;  // grows with every change
    std::vector<PluginDevice> devices;
  };
  Snapshot Get() const;
  // Waits at most `timeout` for a version other than `seen` and returns what is there then.
  Snapshot WaitForChange(std::uint64_t seen, Millis timeout) const;
  // Ends every wait, now and later.
  void Close();

  // Errors: kInvalid (no devices, one twice), kNotFound (an id that is not here), kForbidden (a
  // device that is not open); each names the device.
  Result<Grant> Allocate(const std::vector<std::string>& ids) const;

 private:
  const Vendor vendor_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Snapshot current_;        // guarded by mutex_
  bool simulated_ = false;  // guarded by mutex_
  bool closed_ = false;     // guarded by mutex_
};

}  // namespace bimetal::agent
