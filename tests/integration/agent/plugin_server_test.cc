#include "agent/kubelet/plugin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/agent/fake_kubelet.h"
#include "tests/integration/agent/support.h"

namespace bimetal::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kResource[] = "amd.com/gpu";

PluginDevice MakeDevice(const std::string& id, bool open) {
  PluginDevice device;
  device.id = id;
  device.open = open;
  device.numa_node = 1;
  device.nodes = {"/dev/kfd"};
  return device;
}

class PluginServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<PluginServer> Start(std::vector<PluginDevice> devices,
                                      Millis stream_grace = Seconds(60)) {
    PluginOptions options;
    options.folder = folder_.path();
    options.socket_name = "bimetal-amd.sock";
    options.resource_name = kResource;
    options.vendor = Vendor::kAmd;
    options.poll = Millis{20};
    options.stream_grace = stream_grace;
    auto started = PluginServer::Start(options, std::move(devices), false);
    EXPECT_TRUE(started) << started.error().message;
    return std::move(*started);
  }

  TempFolder folder_;
};

TEST_F(PluginServerTest, RegistersAndStreamsEveryChange) {
  const FakeKubelet kubelet(folder_.path());
  const auto server = Start({MakeDevice("a", false), MakeDevice("b", false)});
  EXPECT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Unhealthy"}, {"b", "Unhealthy"}}));
  server->Offer({MakeDevice("a", true), MakeDevice("b", false)}, false);
  EXPECT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}, {"b", "Unhealthy"}}));
  server->Offer({MakeDevice("b", false)}, false);
  EXPECT_TRUE(kubelet.WaitForHealth(kResource, {{"b", "Unhealthy"}}));
  EXPECT_EQ(kubelet.resource(kResource).registrations, 1);
}

TEST_F(PluginServerTest, AllocateReachesTheContainerOrNamesTheShutDevice) {
  const FakeKubelet kubelet(folder_.path());
  const auto server = Start({MakeDevice("a", true), MakeDevice("b", false)});
  ASSERT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}, {"b", "Unhealthy"}}));
  const auto given = kubelet.Allocate(kResource, {"a"});
  EXPECT_EQ(given.error, "");
  EXPECT_EQ(given.environment.at("BIMETAL_DEVICES"), "a");
  EXPECT_THAT(given.device_files, ElementsAre("/dev/kfd"));
  EXPECT_THAT(kubelet.Allocate(kResource, {"b"}).error, HasSubstr("device b is shut"));
}

TEST_F(PluginServerTest, StartsBeforeTheKubeletAndRegistersWhenItComes) {
  const auto server = Start({MakeDevice("a", true)});
  EXPECT_TRUE(Eventually([&] { return !server->status().last_error.empty(); }));
  EXPECT_FALSE(server->status().registered);
  const FakeKubelet kubelet(folder_.path());
  EXPECT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}}));
  EXPECT_TRUE(Eventually([&] { return server->status().registered; }));
  EXPECT_EQ(server->status().last_error, "");
}

TEST_F(PluginServerTest, KubeletThatRestartsIsRegisteredWithAgain) {
  FakeKubelet kubelet(folder_.path());
  const auto server = Start({MakeDevice("a", true)});
  ASSERT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}}));
  for (int i = 0; i < 3; ++i) {
    kubelet.Restart();
    EXPECT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}}));
    EXPECT_EQ(kubelet.Allocate(kResource, {"a"}).error, "");
  }
}

TEST_F(PluginServerTest, SocketThatVanishedIsMadeAnewAndRegistered) {
  const FakeKubelet kubelet(folder_.path());
  const auto server = Start({MakeDevice("a", true)});
  ASSERT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}}));
  std::filesystem::remove(folder_ / "bimetal-amd.sock");
  EXPECT_TRUE(kubelet.WaitFor(
      kResource, [](const FakeResource& resource) { return resource.registrations == 2; }));
}

TEST_F(PluginServerTest, KubeletThatDroppedItsStreamIsRegisteredWithAgain) {
  FakeKubelet kubelet(folder_.path());
  const auto server = Start({MakeDevice("a", true)}, Millis{50});
  ASSERT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}}));
  const int before = kubelet.resource(kResource).registrations;
  kubelet.DropStreams();
  EXPECT_TRUE(kubelet.WaitFor(kResource, [&](const FakeResource& resource) {
    return resource.registrations > before && resource.lists > 1;
  }));
}

TEST_F(PluginServerTest, EndingItRemovesTheSocket) {
  const FakeKubelet kubelet(folder_.path());
  auto server = Start({MakeDevice("a", true)});
  ASSERT_TRUE(kubelet.WaitForHealth(kResource, {{"a", "Healthy"}}));
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bimetal-amd.sock"));
}

TEST_F(PluginServerTest, BadNamesAreRefused) {
  PluginOptions options;
  options.folder = folder_.path();
  options.socket_name = "x.sock";
  options.resource_name = "gpu";
  EXPECT_EQ(PluginServer::Start(options, {}, false).error().code, ErrorCode::kInvalid);
  options.resource_name = "amd.com/gpu";
  options.socket_name = std::string(120, 'x');
  EXPECT_EQ(PluginServer::Start(options, {}, false).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace bimetal::agent
