#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/devices/source.h"
#include "agent/kubelet/plugin_device.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

struct PluginOptions {
  std::string folder;         // the kubelet's device-plugins folder
  std::string socket_name;    // file name of our socket in it
  std::string resource_name;  // nvidia.com/gpu
  Vendor vendor = Vendor::kNvidia;
  // How often the folder is looked at: kubelet.sock made anew, our own socket removed.
  Millis poll = Seconds(1);
  // Without a ListAndWatch stream for this long the plug-in registers again.
  Millis stream_grace = Seconds(5);
};

// How a plug-in stands with its kubelet.
struct PluginStatus {
  bool registered = false;  // with the kubelet whose socket is there now
  int streams = 0;          // open ListAndWatch calls
  std::string last_error;   // of the last attempt to serve or register; empty: it succeeded
  bool operator==(const PluginStatus&) const = default;
};

// One vendor's device plug-in: serves the kubelet's v1beta1 API on a Unix socket and registers it,
// again whenever the kubelet restarts. Thread-safe.
class PluginServer {
 public:
  // Serving and registering go on in a thread of its own; trouble there is retried for ever and
  // told by status(). The first list that the kubelet sees is `devices`. Error kInvalid: the
  // options make no socket path or resource name.
  static Result<std::unique_ptr<PluginServer>> Start(PluginOptions options,
                                                     std::vector<PluginDevice> devices,
                                                     bool simulated);
  // Ends all streams and removes the socket; takes at most about a second.
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // Replaces the devices; every stream is told at once where something changed. With `simulated`
  // containers get BIMETAL_SIMULATED and no device files.
  void Offer(std::vector<PluginDevice> devices, bool simulated);

  PluginStatus status() const;

 private:
  class Impl;
  explicit PluginServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
