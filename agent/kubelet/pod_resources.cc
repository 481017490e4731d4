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
    const std::string name = pod.namespace_() + "/" + pod.name();
    for (const auto& container : pod.containers()) {
      for (const auto& devices : container.devices()) {
        for (const std::string& id : devices.device_ids()) {
          const auto [it, fresh] = out.device_ids.emplace(id.substr(0, id.find("::")), name);
          if (!fresh) it->second = std::min(it->second, name);
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

// AMD's own plug-in names whole GPUs and first partitions by their PCI address.
bool IsFurtherPartition(const Device& device) {
  return device.parent.known() && !device.id.value.ends_with("-p0");
}

const std::string* FindHolder(const PodUse& use, const Device& device) {
  if (const auto it = use.device_ids.find(device.id.value); it != use.device_ids.end()) {
    return &it->second;
  }
  if (device.vendor != Vendor::kAmd || IsFurtherPartition(device) || !device.pci_address.known()) {
    return nullptr;
  }
  const auto it = use.device_ids.find(device.pci_address.value);
  return it == use.device_ids.end() ? nullptr : &it->second;
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
  const auto stub = v1::PodResourcesLister::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
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
  if (FindHolder(use, device) != nullptr) return true;
  if (use.claim_drivers.contains(amd ? "gpu.amd.com" : "gpu.nvidia.com")) return std::nullopt;
  const bool names_partitions =
      std::any_of(use.device_ids.begin(), use.device_ids.end(),
                  [](const auto& entry) { return entry.first.starts_with("amdgpu_xcp"); });
  if (amd && IsFurtherPartition(device) && names_partitions) return std::nullopt;
  return false;
}

std::string HolderOf(const PodUse& use, const Device& device) {
  const std::string* holder = FindHolder(use, device);
  return holder == nullptr ? "" : *holder;
}

}  // namespace bimetal::agent
