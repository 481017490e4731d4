#include "agent/kubelet/plugin_service.h"

#include <string>
#include <vector>

#include "core/base/log.h"

namespace bimetal::agent {
namespace {

// A stream looks this often whether its kubelet is still there.
constexpr Millis kStreamPoll{500};

v1beta1::ListAndWatchResponse ToMessage(const std::vector<PluginDevice>& devices) {
  v1beta1::ListAndWatchResponse out;
  for (const auto& device : devices) {
    auto* added = out.add_devices();
    added->set_id(device.id);
    added->set_health(device.open ? "Healthy" : "Unhealthy");
    if (device.numa_node) added->mutable_topology()->add_nodes()->set_id(*device.numa_node);
  }
  return out;
}

grpc::StatusCode StatusCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kForbidden:
      return grpc::StatusCode::FAILED_PRECONDITION;
    default:
      return grpc::StatusCode::INVALID_ARGUMENT;
  }
}

class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

grpc::Status PluginService::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                                   v1beta1::DevicePluginOptions*) {
  return grpc::Status::OK;
}

grpc::Status PluginService::ListAndWatch(
    grpc::ServerContext* context, const v1beta1::Empty*,
    grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  const Counted counted(streams_);
  auto seen = devices_.Get();
  if (!writer->Write(ToMessage(seen.devices))) return grpc::Status::OK;
  while (!stopped_ && !context->IsCancelled()) {
    auto now = devices_.WaitForChange(seen.version, kStreamPoll);
    if (now.version == seen.version) continue;
    seen = std::move(now);
    if (!writer->Write(ToMessage(seen.devices))) break;
  }
  return grpc::Status::OK;
}

grpc::Status PluginService::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* reply) {
  for (const auto& container : request->container_requests()) {
    const auto grant =
        devices_.Allocate({container.devices_ids().begin(), container.devices_ids().end()});
    if (!grant) {
      Log(LogLevel::kWarning, "allocation refused", {{"reason", grant.error().message}});
      return {StatusCodeOf(grant.error().code), grant.error().message};
    }
    auto* out = reply->add_container_responses();
    out->mutable_envs()->insert(grant->environment.begin(), grant->environment.end());
    for (const auto& node : grant->nodes) {
      auto* spec = out->add_devices();
      spec->set_container_path(node);
      spec->set_host_path(node);
      spec->set_permissions("rw");
    }
    Log(LogLevel::kInfo, "devices allocated",
        {{"devices", grant->environment.at("BIMETAL_DEVICES")}});
  }
  return grpc::Status::OK;
}

}  // namespace bimetal::agent
