#include "agent/kubelet/pod_resources.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/kubelet/podresources.grpc.pb.h"

namespace bimetal::agent {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

// A kubelet's pod-resources service on a socket of the test's own.
class FakeLister final : public v1::PodResourcesLister::Service {
 public:
  explicit FakeLister(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeLister() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* out) override {
    return answer(context, out);
  }

  std::function<grpc::Status(grpc::ServerContext*, v1::ListPodResourcesResponse*)> answer;

 private:
  std::unique_ptr<grpc::Server> server_;
};

class ReadPodUseTest : public testing::Test {
 protected:
  ReadPodUseTest() {
    std::string name = (std::filesystem::temp_directory_path() / "bimetal-pods-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ReadPodUseTest() override { std::filesystem::remove_all(folder_); }

  std::string socket() const { return folder_ + "/kubelet.sock"; }

  std::string folder_;
};

void Hold(v1::ListPodResourcesResponse& out, const std::string& pod, const std::string& resource,
          const std::vector<std::string>& ids) {
  auto* holder = out.add_pod_resources();
  holder->set_namespace_("team");
  holder->set_name(pod);
  auto* container = holder->add_containers();
  // As the kubelet does it: one entry a NUMA set.
  for (const std::string& id : ids) {
    auto* devices = container->add_devices();
    devices->set_resource_name(resource);
    devices->add_device_ids(id);
  }
}

TEST_F(ReadPodUseTest, CollectsDevicesAndClaimsOfAllPods) {
  FakeLister kubelet(socket());
  kubelet.answer = [](grpc::ServerContext*, v1::ListPodResourcesResponse* out) {
    out->add_pod_resources()->set_name("no-containers");
    Hold(*out, "p-2", "nvidia.com/gpu", {"GPU-a::3", "GPU-a::4"});
    Hold(*out, "p-1", "nvidia.com/gpu", {"GPU-a::0"});
    Hold(*out, "p-3", "nvidia.com/gpu", {"GPU-a::1"});
    Hold(*out, "q", "amd.com/gpu", {"0000:05:00.0"});
    auto* claim =
        out->add_pod_resources()->add_containers()->add_dynamic_resources()->add_claim_resources();
    claim->set_driver_name("gpu.nvidia.com");
    claim->set_device_name("gpu-0");
    return grpc::Status::OK;
  };
  const auto use = ReadPodUse(socket(), Seconds(10));
  ASSERT_TRUE(use.has_value()) << use.error().message;
  EXPECT_THAT(use->device_ids,
              UnorderedElementsAre(Pair("GPU-a", "team/p-1"), Pair("0000:05:00.0", "team/q")))
      << "of those who share one, the first by name";
  EXPECT_THAT(use->claim_drivers, UnorderedElementsAre("gpu.nvidia.com"));
}

TEST_F(ReadPodUseTest, SaysWhyItCannotTell) {
  EXPECT_EQ(ReadPodUse(socket(), Seconds(1)).error().code, ErrorCode::kNotFound);
  FakeLister kubelet(socket());
  kubelet.answer = [](grpc::ServerContext*, v1::ListPodResourcesResponse*) {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in this version");
  };
  const auto old = ReadPodUse(socket(), Seconds(10));
  EXPECT_EQ(old.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(old.error().message, HasSubstr("not in this version"));
}

TEST_F(ReadPodUseTest, DoesNotWaitForAKubeletThatHangs) {
  FakeLister kubelet(socket());
  kubelet.answer = [](grpc::ServerContext* context, v1::ListPodResourcesResponse*) {
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::OK;
  };
  const SystemClock clock;
  const Millis began = clock.Monotonic();
  EXPECT_EQ(ReadPodUse(socket(), Millis{100}).error().code, ErrorCode::kUnavailable);
  EXPECT_LT((clock.Monotonic() - began).v, 5000);
}

TEST_F(ReadPodUseTest, ASocketThatNobodyServesIsUnavailable) {
  { FakeLister gone(socket()); }
  if (!std::filesystem::exists(socket())) {
    // gRPC removes its own; a kubelet that was killed leaves one.
    ASSERT_EQ(mknod(socket().c_str(), S_IFREG | 0600, 0), 0);
  }
  EXPECT_EQ(ReadPodUse(socket(), Seconds(2)).error().code, ErrorCode::kUnavailable);
}

Device Gpu(Vendor vendor, const std::string& id, const std::string& address,
           const std::string& parent = "") {
  Device device;
  device.vendor = vendor;
  device.id.value = id;
  device.pci_address = Reading<std::string>::Of(address);
  if (!parent.empty()) device.parent = Reading<std::string>::Of(parent);
  return device;
}

TEST(IsInUseTest, KnowsADeviceByItsIdWhoeverOffersIt) {
  const PodUse use{{{"GPU-a", "team/p"}, {"MIG-b", "team/q"}}, {}};
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kNvidia, "GPU-a", "0000:18:00.0")), true);
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kNvidia, "MIG-b", "0000:18:00.0", "GPU-c")), true);
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kNvidia, "GPU-c", "0000:2a:00.0")), false);
  EXPECT_EQ(IsInUse(PodUse{}, Gpu(Vendor::kAmd, "GPU-5", "0000:05:00.0")), false);
}

TEST(IsInUseTest, KnowsTheNamesOfAmdsOwnPlugin) {
  const PodUse use{{{"0000:05:00.0", "team/p"}, {"amdgpu_xcp_3", "team/q"}}, {}};
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kAmd, "GPU-5", "0000:05:00.0")), true);
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kAmd, "GPU-5-p0", "0000:05:00.0", "GPU-5")), true);
  // Which of the further partitions is number 3 is not told.
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kAmd, "GPU-5-p1", "0000:05:00.0", "GPU-5")), std::nullopt);
  const PodUse whole{{{"0000:05:00.0", "team/p"}}, {}};
  EXPECT_EQ(IsInUse(whole, Gpu(Vendor::kAmd, "GPU-5-p1", "0000:05:00.0", "GPU-5")), false);
  // A network card of that address is no NVIDIA GPU's business.
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kNvidia, "GPU-a", "0000:05:00.0")), false);
}

TEST(HolderOfTest, NamesThePodWhereverItCanBeTold) {
  const PodUse use{{{"GPU-a", "team/p"}, {"0000:05:00.0", "team/q"}, {"amdgpu_xcp_3", "team/r"}},
                   {"gpu.nvidia.com"}};
  EXPECT_EQ(HolderOf(use, Gpu(Vendor::kNvidia, "GPU-a", "0000:18:00.0")), "team/p");
  EXPECT_EQ(HolderOf(use, Gpu(Vendor::kNvidia, "GPU-b", "0000:05:00.0")), "");
  EXPECT_EQ(HolderOf(use, Gpu(Vendor::kAmd, "GPU-5", "0000:05:00.0")), "team/q");
  EXPECT_EQ(HolderOf(use, Gpu(Vendor::kAmd, "GPU-5-p0", "0000:05:00.0", "GPU-5")), "team/q");
  EXPECT_EQ(HolderOf(use, Gpu(Vendor::kAmd, "GPU-5-p1", "0000:05:00.0", "GPU-5")), "");
}

TEST(IsInUseTest, AClaimOfTheVendorsDriverLeavesItUnknown) {
  const PodUse use{{{"GPU-a", "team/p"}}, {"gpu.nvidia.com"}};
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kNvidia, "GPU-a", "0000:18:00.0")), true);
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kNvidia, "GPU-b", "0000:2a:00.0")), std::nullopt);
  EXPECT_EQ(IsInUse(use, Gpu(Vendor::kAmd, "GPU-5", "0000:05:00.0")), false);
}

}  // namespace
}  // namespace bimetal::agent
