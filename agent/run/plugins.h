#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/devices/source.h"
#include "agent/kubelet/plugin_server.h"
#include "api/agent.pb.h"

namespace bimetal::agent {

// The device plug-ins that run now, as the operator's orders say. Loop thread only.
class Plugins {
 public:
  struct Options {
    std::string folder;
    Millis poll = Seconds(1);
    Millis stream_grace = Seconds(5);
  };
  explicit Plugins(Options options) : options_(std::move(options)) {}

  // Starts, replaces or ends the vendor's plug-in after the order (null: none) and offers the
  // devices.
  void Apply(Vendor vendor, const api::VendorOrder* order, std::vector<PluginDevice> devices,
             bool simulated);

  // By vendor; a vendor without an entry is not to be served.
  struct State {
    std::string resource_name;
    PluginStatus status;
  };
  std::map<Vendor, State> states() const;

  void Stop() { running_.clear(); }

 private:
  struct Running {
    std::string resource_name;
    std::unique_ptr<PluginServer> server;  // null where it could not be started
    std::string error;
  };

  const Options options_;
  std::map<Vendor, Running> running_;
};

}  // namespace bimetal::agent
