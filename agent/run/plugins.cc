#include "agent/run/plugins.h"

#include <utility>

#include "core/base/log.h"

namespace bimetal::agent {

void Plugins::Apply(Vendor vendor, const api::VendorOrder* order, std::vector<PluginDevice> devices,
                    bool simulated) {
  const std::string name(VendorName(vendor));
  if (order == nullptr || !order->serve_device_plugin()) {
    if (running_.erase(vendor) > 0)
      Log(LogLevel::kInfo, "device plug-in ended", {{"vendor", name}});
    return;
  }
  auto at = running_.find(vendor);
  if (at == running_.end() || at->second.resource_name != order->resource_name()) {
    if (at != running_.end()) running_.erase(at);
    Running fresh;
    fresh.resource_name = order->resource_name();
    PluginOptions options;
    options.folder = options_.folder;
    options.socket_name = "bimetal-" + name + ".sock";
    options.resource_name = order->resource_name();
    options.vendor = vendor;
    options.poll = options_.poll;
    options.stream_grace = options_.stream_grace;
    auto started = PluginServer::Start(std::move(options), devices, simulated);
    if (started) {
      fresh.server = std::move(*started);
    } else {
      fresh.error = started.error().message;
      Log(LogLevel::kError, "device plug-in cannot be served",
          {{"vendor", name}, {"reason", fresh.error}});
    }
    at = running_.emplace(vendor, std::move(fresh)).first;
  }
  if (at->second.server) at->second.server->Offer(std::move(devices), simulated);
}

std::map<Vendor, Plugins::State> Plugins::states() const {
  std::map<Vendor, State> out;
  for (const auto& [vendor, running] : running_) {
    State state;
    state.resource_name = running.resource_name;
    if (running.server) state.status = running.server->status();
    if (!running.server) state.status.last_error = running.error;
    out[vendor] = std::move(state);
  }
  return out;
}

}  // namespace bimetal::agent
