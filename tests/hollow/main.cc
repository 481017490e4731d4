// bimetal-hollow: the agents of hollow nodes (Node objects that KWOK plays), in one process. Each
// node speaks the agent protocol with a token of its own that is bound to its Node, has simulated
// devices, and hands in a validation run for every run that the operator orders: benches go through
// the real admission path.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/report/channel.h"
#include "api/kubernetes.pb.h"
#include "core/base/log.h"
#include "kube/client/client.h"
#include "kube/codec/codec.h"
#include "kube/config/config.h"
#include "kube/transport/transport.h"

namespace bimetal::hollow {
namespace {

constexpr std::string_view kUsage =
    R"(bimetal-hollow: speaks the agent protocol for all hollow nodes of a cluster

usage: bimetal-hollow --kubeconfig FILE --operator HOST:PORT [--namespace NS] [--interval SECONDS]
                      [--next-driver NAME [--fail N]]

Runs until it is stopped. Its devices are simulated and say so. On SIGUSR1 every node gets the
driver NAME at once, and with it another fingerprint; the first N nodes then fail their validation.
)";

struct Options {
  std::string kubeconfig, target, name_space = "bimetal-system";
  std::string next_driver;
  int interval_s = 10, fail = 0;
};

struct HollowNode {
  std::string name, uid, vendor, token;
  std::string driver = "hollow-1";  // also the fingerprint
  bool fails = false;               // its validation, from now on
  int devices = 0;
  std::int64_t seq = 0;
  std::string handed_in;   // the last run that was handed in
  api::ValidationRun run;  // waits to be acknowledged; empty id: none
};

// Agents of different nodes do not wait for each other: so many report at once.
constexpr std::size_t kSpeakers = 16;

std::atomic<int> g_stop = 0, g_next_driver = 0;
static_assert(std::atomic<int>::is_always_lock_free, "set in a signal handler");

bool ParseOptions(int argc, char** argv, Options* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (arg == "--kubeconfig")
      out->kubeconfig = value;
    else if (arg == "--operator")
      out->target = value;
    else if (arg == "--namespace")
      out->name_space = value;
    else if (arg == "--interval")
      out->interval_s = std::atoi(value.c_str());
    else if (arg == "--next-driver")
      out->next_driver = value;
    else if (arg == "--fail")
      out->fail = std::atoi(value.c_str());
    else
      return false;
  }
  return !out->kubeconfig.empty() && !out->target.empty() && out->interval_s > 0;
}

// A token of the agent's service account that the API server binds to this Node.
Result<std::string> NodeToken(kube::Client& client, const Options& options,
                              const HollowNode& node) {
  kube::Request request;
  request.method = "POST";
  request.path_and_query =
      "/api/v1/namespaces/" + options.name_space + "/serviceaccounts/bimetal-agent/token";
  request.content_type = "application/json";
  request.body =
      R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":["bimetal-operator"],)"
      R"("expirationSeconds":86400,"boundObjectRef":{"apiVersion":"v1","kind":"Node","name":")" +
      node.name + R"(","uid":")" + node.uid + R"("}}})";
  BIMETAL_TRY_ASSIGN(const std::string body,
                     client.Raw(request, "create a token for node " + node.name));
  // {"status":{"token":"..."}}: the only field of that name.
  constexpr std::string_view kKey = R"("token":")";
  const auto begin = body.find(kKey);
  const auto end = begin == std::string::npos ? begin : body.find('"', begin + kKey.size());
  if (end == std::string::npos)
    return Fail(ErrorCode::kData, "the answer to a TokenRequest has no token");
  return body.substr(begin + kKey.size(), end - begin - kKey.size());
}

Result<std::vector<HollowNode>> FindNodes(kube::Client& client) {
  BIMETAL_TRY_ASSIGN(const auto list,
                     client.ListAll<api::Node>({.ns = "",
                                                .label_selector = "bimetal.dev/hollow=true",
                                                .field_selector = "",
                                                .page_size = 500}));
  std::vector<HollowNode> out;
  for (const auto& object : list.items) {
    HollowNode node;
    node.name = object.metadata().name();
    node.uid = object.metadata().uid();
    for (const auto* vendor : {"nvidia", "amd"}) {
      const auto it = object.status().capacity().find(std::string(vendor) + ".com/gpu");
      if (it == object.status().capacity().end()) continue;
      node.vendor = vendor;
      node.devices = std::atoi(it->second.c_str());
    }
    if (node.devices > 0) out.push_back(std::move(node));
  }
  return out;
}

std::string DeviceName(const HollowNode& node, int index) {
  return "GPU-hollow-" + node.name + "-" + std::to_string(index);
}

api::ReportNodeRequest ReportOf(HollowNode& node) {
  api::ReportNodeRequest request;
  request.set_node_name(node.name);
  request.set_boot_id("hollow-" + node.uid);
  node.seq = std::max(node.seq + 1, SystemClock().Now().ms);
  request.set_seq(node.seq);
  request.set_agent_version("hollow");
  auto& inventory = *request.mutable_inventory();
  inventory.set_simulated(true);
  auto* stack = inventory.add_stacks();
  stack->set_vendor(node.vendor);
  stack->set_driver_version(node.driver);
  stack->set_fingerprint(node.driver);
  for (int i = 0; i < node.devices; ++i) {
    auto* device = inventory.add_devices();
    device->set_id(DeviceName(node, i));
    device->set_vendor(node.vendor);
    device->set_index(i);
    device->set_model(node.vendor == "nvidia" ? "NVIDIA H100 80GB HBM3"
                                              : "AMD Instinct MI300X OAM");
    device->set_architecture(node.vendor == "nvidia" ? "sm_90" : "gfx942");
    device->set_memory_bytes(80LL << 30);
    device->set_health(api::HEALTHY);
  }
  if (!node.run.run().empty()) *request.add_runs() = node.run;
  return request;
}

void MakeRun(HollowNode& node, const std::string& id) {
  node.handed_in = id;
  node.run.Clear();
  node.run.set_run(id);
  node.run.set_vendor(node.vendor);
  node.run.set_backend("host");
  node.run.set_simulated(true);
  node.run.set_level("L1");
  node.run.set_fingerprint(node.driver);
  for (int i = 0; i < node.devices; ++i) {
    for (const auto* check : {"memory-pattern", "compute-checksum"}) {
      auto* verdict = node.run.add_verdicts();
      verdict->set_check(check);
      verdict->set_device(DeviceName(node, i));
      verdict->set_level("L1");
      verdict->set_verdict(node.fails ? "Fail" : "Pass");
      verdict->set_evidence("hollow node: nothing was computed");
    }
  }
}

// Reports once; true where the operator orders a run, so that the node reports again at once.
bool ReportOnce(api::AgentService::StubInterface& stub, HollowNode& node) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  context.AddMetadata("authorization", "Bearer " + node.token);
  api::ReportNodeReply reply;
  const auto status = stub.ReportNode(&context, ReportOf(node), &reply);
  if (!status.ok()) {
    Log(LogLevel::kWarning, "report refused",
        {{"node", node.name}, {"error", status.error_message()}});
    return false;
  }
  for (const auto& id : reply.acknowledged_runs()) {
    if (id == node.run.run()) node.run.Clear();
  }
  for (const auto& order : reply.orders()) {
    if (order.expected_run().empty() || order.expected_run() == node.handed_in) continue;
    MakeRun(node, order.expected_run());
    return true;
  }
  return !node.run.run().empty();
}

// The nodes first, first + kSpeakers, ...: each reports once an interval, in turns that are spread
// over it; one with news reports again in the next round.
void Speak(const Options& options, api::AgentService::StubInterface& stub,
           std::vector<HollowNode>& nodes, std::size_t first) {
  constexpr int kRoundMs = 500;
  const auto rounds = static_cast<std::size_t>(options.interval_s * 1000 / kRoundMs);
  std::vector<bool> again(nodes.size(), true);
  bool changed = false;
  for (std::size_t round = 0; g_stop == 0; round = (round + 1) % rounds) {
    const auto begin = std::chrono::steady_clock::now();
    if (g_next_driver != 0 && !changed && !options.next_driver.empty()) {
      changed = true;
      for (std::size_t i = first; i < nodes.size(); i += kSpeakers) {
        nodes[i].driver = options.next_driver;
        nodes[i].fails = i < static_cast<std::size_t>(options.fail);
        nodes[i].run.Clear();
      }
      std::fill(again.begin(), again.end(), true);
    }
    for (std::size_t i = first; i < nodes.size() && g_stop == 0; i += kSpeakers) {
      if (again[i] || i / kSpeakers % rounds == round) again[i] = ReportOnce(stub, nodes[i]);
    }
    std::this_thread::sleep_until(begin + std::chrono::milliseconds(kRoundMs));
  }
}

int Run(const Options& options) {
  auto config = kube::KubeconfigFile(options.kubeconfig);
  if (!config) {
    std::fprintf(stderr, "bimetal-hollow: %s\n", config.error().message.c_str());
    return 1;
  }
  auto transport = kube::MakeTransport(*config);
  if (!transport) {
    std::fprintf(stderr, "bimetal-hollow: %s\n", transport.error().message.c_str());
    return 1;
  }
  kube::Client client(std::shared_ptr<kube::Transport>(std::move(*transport)));
  auto nodes = FindNodes(client);
  const auto ca = client.Get<api::ConfigMap>(options.name_space, "bimetal-agent-ca");
  if (!nodes || !ca) {
    std::fprintf(stderr, "bimetal-hollow: %s\n",
                 (!nodes ? nodes.error() : ca.error()).message.c_str());
    return 1;
  }
  for (auto& node : *nodes) {
    auto token = NodeToken(client, options, node);
    if (!token) {
      std::fprintf(stderr, "bimetal-hollow: %s\n", token.error().message.c_str());
      return 1;
    }
    node.token = std::move(*token);
  }
  Log(LogLevel::kInfo, "speaking for hollow nodes", {{"nodes", nodes->size()}});
  agent::OperatorChannel channel("bimetal-operator." + options.name_space + ".svc");
  auto& stub = channel.To(options.target, ca->data().at("ca.crt"));
  std::vector<std::jthread> speakers;
  for (std::size_t first = 0; first < kSpeakers; ++first) {
    speakers.emplace_back([&, first] { Speak(options, stub, *nodes, first); });
  }
  return 0;  // when all have stopped
}

}  // namespace
}  // namespace bimetal::hollow

int main(int argc, char** argv) {
  bimetal::hollow::Options options;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fwrite(bimetal::hollow::kUsage.data(), 1, bimetal::hollow::kUsage.size(), stdout);
    return 0;
  }
  if (!bimetal::hollow::ParseOptions(argc, argv, &options)) {
    std::fwrite(bimetal::hollow::kUsage.data(), 1, bimetal::hollow::kUsage.size(), stderr);
    return 64;
  }
  std::signal(SIGTERM, [](int) { bimetal::hollow::g_stop = 1; });
  std::signal(SIGUSR1, [](int) { bimetal::hollow::g_next_driver = 1; });
  std::signal(SIGINT, [](int) { bimetal::hollow::g_stop = 1; });
  return bimetal::hollow::Run(options);
}
