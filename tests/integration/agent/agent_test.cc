#include "agent/run/agent.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/status_code_enum.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "agent/devices/fingerprint.h"
#include "agent/kubelet/podresources.grpc.pb.h"
#include "tests/integration/agent/fake_kubelet.h"
#include "tests/integration/agent/fake_operator.h"
#include "tests/integration/agent/support.h"

namespace bimetal::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kName[] = "bimetal-operator.test.svc";
constexpr char kResource[] = "amd.com/gpu";
constexpr char kFirst[] = "GPU-00000000000000a1";
constexpr char kSecond[] = "GPU-00000000000000a2";
using HealthMap = std::map<std::string, std::string>;
const HealthMap kAllShut = {{kFirst, "Unhealthy"}, {kSecond, "Unhealthy"}};
const HealthMap kAllOpen = {{kFirst, "Healthy"}, {kSecond, "Healthy"}};
const HealthMap kFirstOpen = {{kFirst, "Healthy"}, {kSecond, "Unhealthy"}};

Inventory TwoDevices() {
  Inventory inventory;
  inventory.kernel = Reading<std::string>::Of("6.1.0");
  inventory.boot_id = Reading<std::string>::Of("boot-1");
  for (const char* id : {kFirst, kSecond}) {
    Device device;
    device.vendor = Vendor::kAmd;
    device.id = DeviceId{id};
    device.healthy = Reading<bool>::Of(true);
    inventory.devices.push_back(device);
  }
  return inventory;
}

// The kubelet's word on which devices pods hold, on a socket of its own.
class FakePods final : public v1::PodResourcesLister::Service {
 public:
  explicit FakePods(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakePods() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Hold(const std::string& id) {
    const std::lock_guard lock(mutex_);
    held_ = id;
  }

  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* out) override {
    const std::lock_guard lock(mutex_);
    if (held_.empty()) return grpc::Status::OK;
    auto* pod = out->add_pod_resources();
    pod->set_namespace_("team");
    pod->set_name("train-0");
    auto* devices = pod->add_containers()->add_devices();
    devices->set_resource_name(kResource);
    devices->add_device_ids(held_);
    return grpc::Status::OK;
  }

 private:
  std::mutex mutex_;
  std::string held_;  // guarded by mutex_
  std::unique_ptr<grpc::Server> server_;
};

std::string RunText(const std::string& run, const std::string& vendor = "amd") {
  return R"({"type":"run","run":")" + run + R"(","vendor":")" + vendor +
         R"(","backend":"hip","level":"L1"})"
         "\n"
         R"({"type":"verdict","check":"memory.pattern","device":")" +
         kFirst +
         R"(","verdict":"Pass"})"
         "\n"
         R"({"type":"done","passed":1})"
         "\n";
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() : kubelet_(folder_ / "device-plugins") {
    WriteFile(folder_ / "ca.crt", certificates().ca_pem);
    WriteFile(folder_ / "token", "token");
    Serve();
  }
  ~AgentTest() override { agent_.reset(); }

  static const Certificates& certificates() {
    static const TempFolder folder;
    static const Certificates made = MakeCertificates(folder.path(), kName);
    return made;
  }

  // Served once: its server takes two seconds to end.
  static AgentMetrics& metrics() {
    static const auto served = AgentMetrics::Serve("127.0.0.1:0");
    return **served;
  }

  void Serve() {
    operator_ = std::make_unique<FakeOperator>(
        certificates(), [this](const FakeCall& call) { return AnswerCall(call); }, port_);
    port_ = operator_->port();
  }
  void OperatorGoesAway() { operator_.reset(); }

  void StartAgent() {
    AgentParts parts;
    parts.config.operator_endpoint = {"127.0.0.1:" + std::to_string(port_), kName,
                                      folder_ / "ca.crt", folder_ / "token"};
    parts.config.state_dir = folder_ / "state";
    parts.config.socket = folder_ / "agent.sock";
    parts.config.device_plugin_dir = folder_ / "device-plugins";
    parts.config.pod_resources_socket = folder_ / "pods.sock";
    parts.config.report_interval = Millis{100};
    parts.config.enumerate_interval = Millis{20};
    parts.node_name = "n1";
    parts.version = "test";
    parts.read_inventory = [machine = machine_] { return machine->Read(); };
    parts.enumerate_deadline = enumerate_deadline_;
    parts.plugin_poll = Millis{20};
    parts.tick = Millis{20};
    parts.order_wait = order_wait_;
    auto started = Agent::Start(std::move(parts), clock_, metrics());
    ASSERT_TRUE(started) << started.error().message;
    agent_ = std::move(*started);
  }

  // The machine, as the reader sees it; outlives an agent that was left hanging.
  struct Machine {
    std::mutex mutex;
    Inventory inventory = TwoDevices();  // guarded by mutex
    std::atomic<bool> hangs{false};
    Inventory Read() {
      Eventually([&] { return !hangs.load(); });
      const std::lock_guard lock(mutex);
      return inventory;
    }
  };
  void Change(const std::function<void(Inventory&)>& change) {
    const std::lock_guard lock(machine_->mutex);
    change(machine_->inventory);
  }

  // The operator's words from now on.
  void Order(const std::function<void(api::VendorOrder&)>& change) {
    const std::lock_guard lock(mutex_);
    change(order_);
  }
  void OpenAll() {
    const std::string fingerprint = Fingerprint(machine_->Read(), Vendor::kAmd);
    Order([&](api::VendorOrder& order) {
      order.set_open_fingerprint(fingerprint);
      order.add_open_devices(kFirst);
      order.add_open_devices(kSecond);
    });
  }
  void Acknowledge(const std::string& run) {
    const std::lock_guard lock(mutex_);
    acknowledged_ = run;
  }

  FakeAnswer AnswerCall(const FakeCall& call) {
    const std::lock_guard lock(mutex_);
    FakeAnswer answer;
    answer.reply.set_accepted_seq(call.request.seq());
    *answer.reply.add_orders() = order_;
    if (!acknowledged_.empty()) answer.reply.add_acknowledged_runs(acknowledged_);
    return answer;
  }

  static api::VendorOrder ShutOrder() {
    api::VendorOrder order;
    order.set_vendor("amd");
    order.set_serve_device_plugin(true);
    order.set_resource_name(kResource);
    return order;
  }

  bool HasFinding(const FakeCall& call, const std::string& code) {
    const auto& findings = call.request.inventory().findings();
    return std::any_of(findings.begin(), findings.end(),
                       [&](const api::Finding& finding) { return finding.code() == code; });
  }

  TempFolder folder_;
  SystemClock clock_;
  FakeKubelet kubelet_;
  std::shared_ptr<Machine> machine_ = std::make_shared<Machine>();
  Millis enumerate_deadline_ = Minutes(1);
  Millis order_wait_ = Seconds(20);
  std::mutex mutex_;
  api::VendorOrder order_ = ShutOrder();  // guarded by mutex_
  std::string acknowledged_;              // guarded by mutex_
  int port_ = 0;
  std::unique_ptr<FakeOperator> operator_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentTest, ReportsWhoItIsAndWhatItSees) {
  StartAgent();
  ASSERT_TRUE(operator_->WaitForCalls(1));
  const auto request = operator_->calls()[0].request;
  EXPECT_EQ(request.node_name(), "n1");
  EXPECT_EQ(request.boot_id(), "boot-1");
  EXPECT_EQ(request.agent_version(), "test");
  EXPECT_EQ(request.inventory().devices_size(), 2);
  EXPECT_EQ(request.inventory().stacks(0).fingerprint(),
            Fingerprint(machine_->Read(), Vendor::kAmd));
}

TEST_F(AgentTest, TellsWhichDevicesPodsHoldOnceTheKubeletSaysSo) {
  StartAgent();
  ASSERT_TRUE(operator_->WaitForCalls(1));
  const auto first = operator_->calls()[0].request.inventory().devices(0);
  EXPECT_FALSE(first.has_in_use());
  EXPECT_THAT(first.unread().at("in_use"), HasSubstr("is not there"));
  FakePods pods(folder_ / "pods.sock");
  pods.Hold(kFirst);
  EXPECT_TRUE(operator_->WaitForCall([](const FakeCall& call) {
    const auto& devices = call.request.inventory().devices();
    return devices[0].has_in_use() && devices[0].in_use() && devices[1].has_in_use() &&
           !devices[1].in_use() && !devices[0].unread().contains("in_use") &&
           devices[0].holder() == "team/train-0" && devices[1].holder().empty();
  }));
  pods.Hold("");
  EXPECT_TRUE(operator_->WaitForCall([](const FakeCall& call) {
    const auto& device = call.request.inventory().devices(0);
    return device.has_in_use() && !device.in_use() && device.holder().empty();
  }));
}

TEST_F(AgentTest, EveryDeviceIsShutUntilTheOperatorOpensIt) {
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
  const std::string fingerprint = Fingerprint(machine_->Read(), Vendor::kAmd);
  Order([&](api::VendorOrder& order) {
    order.set_open_fingerprint(fingerprint);
    order.add_open_devices(kFirst);
  });
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kFirstOpen));
  EXPECT_EQ(kubelet_.Allocate(kResource, {kFirst}).environment.at("ROCR_VISIBLE_DEVICES"), kFirst);
  Order([](api::VendorOrder& order) { order = ShutOrder(); });
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
}

TEST_F(AgentTest, NewFingerprintShutsEveryDeviceAlsoWithoutTheOperator) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  OperatorGoesAway();
  Change([](Inventory& now) { now.kernel = Reading<std::string>::Of("6.2.0"); });
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
}

TEST_F(AgentTest, SickDeviceIsShutAndAVanishedOneIsGone) {
  OpenAll();
  Order([](api::VendorOrder& order) { order.set_observe(true); });
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  Change([](Inventory& now) { now.devices[1].healthy = Reading<bool>::Of(false, "ring timeout"); });
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kFirstOpen));
  Change([](Inventory& now) { now.devices.pop_back(); });
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, {{kFirst, "Healthy"}}));
}

TEST_F(AgentTest, PluginIsServedOnlyWhereOrderedAndUnderTheOrderedName) {
  Order([](api::VendorOrder& order) { order.set_serve_device_plugin(false); });
  StartAgent();
  ASSERT_TRUE(operator_->WaitForCalls(3));
  EXPECT_EQ(kubelet_.resource(kResource).registrations, 0);
  Order([](api::VendorOrder& order) { order.set_serve_device_plugin(true); });
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
  Order([](api::VendorOrder& order) { order.set_resource_name("example.com/gpu"); });
  EXPECT_TRUE(kubelet_.WaitForHealth("example.com/gpu", kAllShut));
}

TEST_F(AgentTest, RestartWhileTheOperatorIsAwayKeepsProvenDevicesOpen) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  OperatorGoesAway();
  agent_.reset();
  kubelet_.Restart();
  StartAgent();
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  EXPECT_EQ(kubelet_.resource(kResource).lists, 1);  // open in the very first list
}

TEST_F(AgentTest, NewBootWhileTheOperatorIsAwayShutsEveryDevice) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  OperatorGoesAway();
  agent_.reset();
  kubelet_.Restart();
  Change([](Inventory& now) { now.boot_id = Reading<std::string>::Of("boot-2"); });
  StartAgent();
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
}

TEST_F(AgentTest, DriverChangeAndRebootWhileTheOperatorIsAwayOpenNothingNotEvenForAMoment) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  OperatorGoesAway();
  agent_.reset();
  kubelet_.Restart();
  Change([](Inventory& now) {
    now.boot_id = Reading<std::string>::Of("boot-2");
    for (auto& device : now.devices) device.driver = Reading<std::string>::Of("6.99");
  });
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
  EXPECT_EQ(kubelet_.resource(kResource).lists, 1);  // the kubelet was never told anything else
}

TEST_F(AgentTest, ExchangedDeviceIsShutThoughTheFingerprintIsTheSame) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  OperatorGoesAway();
  const std::string before = Fingerprint(machine_->Read(), Vendor::kAmd);
  Change([](Inventory& now) { now.devices[1].id = DeviceId{"GPU-00000000000000a9"}; });
  EXPECT_EQ(Fingerprint(machine_->Read(), Vendor::kAmd), before);
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource,
                                     {{kFirst, "Healthy"}, {"GPU-00000000000000a9", "Unhealthy"}}));
}

TEST_F(AgentTest, CorruptStateIsReportedAndOpensNothing) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  agent_.reset();
  kubelet_.Restart();
  Order([](api::VendorOrder& order) { order = ShutOrder(); });
  const std::string file = folder_ / "state/agent.json";
  const std::string whole = ReadFile(file);
  WriteFile(file, whole.substr(0, whole.size() / 2));
  const std::size_t before = operator_->calls().size();
  StartAgent();
  ASSERT_TRUE(operator_->WaitForCalls(before + 1));
  EXPECT_TRUE(HasFinding(operator_->calls()[before], "StateFileUnreadable"));
  EXPECT_EQ(ReadFile(file + ".bad"), whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
}

TEST_F(AgentTest, OrderedRunReachesTheOperatorUntilItIsAcknowledged) {
  Order([](api::VendorOrder& order) { order.set_expected_run("pod-1"); });
  StartAgent();
  EXPECT_EQ(AskSocket(folder_ / "agent.sock", RunText("pod-1")), "{\"ok\":true}\n");
  const auto has_run = [](const FakeCall& call) { return call.request.runs_size() == 1; };
  ASSERT_TRUE(operator_->WaitForCall(has_run));
  ASSERT_TRUE(operator_->WaitForCall(has_run));  // again and again
  const auto calls = operator_->calls();
  const auto& run = calls.back().request.runs(0);
  EXPECT_EQ(run.run(), "pod-1");
  EXPECT_EQ(run.fingerprint(), Fingerprint(machine_->Read(), Vendor::kAmd));
  EXPECT_EQ(run.verdicts(0).verdict(), "Pass");
  Acknowledge("pod-1");
  EXPECT_TRUE(
      operator_->WaitForCall([](const FakeCall& call) { return call.request.runs_size() == 0; }));
}

TEST_F(AgentTest, UndeliveredRunSurvivesARestart) {
  Order([](api::VendorOrder& order) { order.set_expected_run("pod-1"); });
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));  // the order has come
  OperatorGoesAway();
  ASSERT_EQ(AskSocket(folder_ / "agent.sock", RunText("pod-1")), "{\"ok\":true}\n");
  agent_.reset();
  StartAgent();
  Serve();
  ASSERT_TRUE(operator_->WaitForCalls(1));
  ASSERT_EQ(operator_->calls()[0].request.runs_size(), 1);
  EXPECT_EQ(operator_->calls()[0].request.runs(0).run(), "pod-1");
}

TEST_F(AgentTest, RunThatIsNotOrderedOrOfAnotherVendorIsRefused) {
  order_wait_ = Millis{300};
  Order([](api::VendorOrder& order) { order.set_expected_run("pod-1"); });
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));  // the order has come
  EXPECT_THAT(AskSocket(folder_ / "agent.sock", RunText("pod-9")), HasSubstr("unknown run pod-9"));
  EXPECT_THAT(AskSocket(folder_ / "agent.sock", RunText("pod-1", "nvidia")),
              HasSubstr("ordered for vendor amd, not nvidia"));
  for (const auto& call : operator_->calls()) EXPECT_EQ(call.request.runs_size(), 0);
}

TEST_F(AgentTest, RunDuringWhichTheMachineChangedHasNoFingerprint) {
  Order([](api::VendorOrder& order) { order.set_expected_run("pod-1"); });
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
  Change([](Inventory& now) { now.kernel = Reading<std::string>::Of("6.2.0"); });
  const std::string changed = Fingerprint(machine_->Read(), Vendor::kAmd);
  ASSERT_TRUE(operator_->WaitForCall([&](const FakeCall& call) {
    return call.request.inventory().stacks(0).fingerprint() == changed;
  }));
  ASSERT_EQ(AskSocket(folder_ / "agent.sock", RunText("pod-1")), "{\"ok\":true}\n");
  ASSERT_TRUE(
      operator_->WaitForCall([](const FakeCall& call) { return call.request.runs_size() == 1; }));
  EXPECT_EQ(operator_->calls().back().request.runs(0).fingerprint(), "");
}

TEST_F(AgentTest, MachineThatHangsShutsEveryDeviceAndDoesNotHoldUpTheEnd) {
  enumerate_deadline_ = Millis{200};
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  machine_->hangs = true;
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
  EXPECT_TRUE(operator_->WaitForCall([&](const FakeCall& call) {
    return HasFinding(call, "EnumerationHung") &&
           call.request.inventory().devices(0).health() == api::HEALTH_UNKNOWN;
  }));
  const Millis before = clock_.Monotonic();
  EXPECT_FALSE(agent_->Stop());
  EXPECT_LT(clock_.Monotonic() - before, Seconds(2));
  machine_->hangs = false;
}

TEST_F(AgentTest, MachineThatAnswersAgainIsOpenAgain) {
  enumerate_deadline_ = Millis{200};
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  machine_->hangs = true;
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllShut));
  machine_->hangs = false;
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
}

TEST_F(AgentTest, MetricsTellDevicesAndReports) {
  OpenAll();
  StartAgent();
  ASSERT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  EXPECT_TRUE(Eventually([&] {
    const std::string text = HttpGet(metrics().port(), "/metrics");
    return text.find("bimetal_agent_offered_devices{vendor=\"amd\"} 2") != std::string::npos &&
           text.find("bimetal_agent_devices{health=\"healthy\",vendor=\"amd\"} 2") !=
               std::string::npos &&
           text.find("bimetal_agent_plugin_registered{vendor=\"amd\"} 1") != std::string::npos &&
           text.find("bimetal_agent_report_age_seconds ") != std::string::npos;
  }));
}

TEST_F(AgentTest, StateThatCannotBeSavedIsReportedAndWorkGoesOn) {
  WriteFile(folder_ / "state", "a file where the folder should be");
  OpenAll();
  StartAgent();
  EXPECT_TRUE(kubelet_.WaitForHealth(kResource, kAllOpen));
  EXPECT_TRUE(operator_->WaitForCall(
      [&](const FakeCall& call) { return HasFinding(call, "StateNotSaved"); }));
  EXPECT_TRUE(Eventually([&] {
    return HttpGet(metrics().port(), "/metrics")
               .find(
                   "bimetal_agent_findings{code=\"StateNotSaved\",severity=\"Warning\",vendor="
                   "\"\"} 1") != std::string::npos;
  }));
}

}  // namespace
}  // namespace bimetal::agent
