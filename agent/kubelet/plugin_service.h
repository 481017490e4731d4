#pragma once

#include <atomic>

#include "agent/kubelet/device_list.h"
#include "agent/kubelet/deviceplugin.grpc.pb.h"

namespace bimetal::agent {

// The calls that a kubelet makes. Thread-safe.
class PluginService final : public v1beta1::DevicePlugin::Service {
 public:
  // `devices` must outlive it.
  explicit PluginService(const DeviceList& devices) : devices_(devices) {}

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* reply) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* reply) override;

  // Ends the streams; the server can be shut down then.
  void Stop() { stopped_ = true; }
  int streams() const { return streams_; }

 private:
  const DeviceList& devices_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> streams_{0};
};

}  // namespace bimetal::agent
