#include "agent/kubelet/pod_resources.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "agent/kubelet/podresources.grpc.pb.h"

namespace bimetal::agent {
namespace {

// The kubelet's own limit of an answer.
constexpr int kMaxAnswer = 16 * 1024 * 1024;

PodUse ToUse(const v1::ListPodResourcesResponse& reply) {
  PodUse out;
  for (const auto& pod : reply.pod_resources()) {
    for (const auto& container : pod.containers()) {
      for (const auto& devices : container.devices()) {
        for (const std::string& id : devices.device_ids()) {
          out.device_ids.insert(id.substr(0, id.find("::")));
        }
      }
      for (const auto& claim : container.dynamic_resources()) {
        for (const auto& resource : claim.claim_resources()) {
          out.claim_drivers.insert(resource.driver_name());
        }
      }
    }
  }
  return out;
}

}  // namespace

Result<PodUse> ReadPodUse(const std::string& socket, Millis deadline) {
  struct stat info {};
  if (stat(socket.c_str(), &info) != 0) {
    return Fail(ErrorCode::kNotFound, "the kubelet's socket " + socket + " is not there");
  }
  // A channel of its own: one that saw an older socket would wait out its backoff.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxAnswer);
  const auto stub = v1::PodResourcesLister::NewStub(grpc::CreateCustomChannel(
      "unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline.v));
  v1::ListPodResourcesResponse reply;
  const auto status = stub->List(&context, v1::ListPodResourcesRequest(), &reply);
  if (status.ok()) return ToUse(reply);
  const std::string message = "the kubelet's list of pods: " + status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return Fail(ErrorCode::kUnsupported, message);
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Fail(ErrorCode::kUnavailable, message);
    default:
      return Fail(ErrorCode::kData, message);
  }
}

std::optional<bool> IsInUse(const PodUse& use, const Device& device) {
  const bool amd = device.vendor == Vendor::kAmd;
  if (use.device_ids.contains(device.id.value)) return true;
  const bool further_partition = device.parent.known() && !device.id.value.ends_with("-p0");
  if (amd && !further_partition && device.pci_address.known() &&
      use.device_ids.contains(device.pci_address.value)) {
    return true;
  }
  if (use.claim_drivers.contains(amd ? "gpu.amd.com" : "gpu.nvidia.com")) return std::nullopt;
  const bool names_partitions =
      std::any_of(use.device_ids.begin(), use.device_ids.end(),
                  [](const std::string& id) { return id.starts_with("amdgpu_xcp"); });
  if (amd && further_partition && names_partitions) return std::nullopt;
  return false;
}

}  // namespace bimetal::agent
