// bimetal-agent: one per GPU node. docs/reference/agent.md describes flags, file and metrics.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/config/config.h"
#include "agent/devices/inventory.h"
#include "agent/devices/root_files.h"
#include "agent/diagnosis/diagnose.h"
#include "agent/metrics/metrics.h"
#include "agent/report/grpc_log.h"
#include "agent/run/agent.h"
#include "core/base/log.h"

namespace bimetal::agent {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 64;  // EX_USAGE of sysexits.h

constexpr char kHelp[] =
    R"(bimetal-agent: reports a node's GPUs to the operator, offers proven ones to the kubelet.

usage: bimetal-agent --config FILE

  --config FILE   agent.yaml (docs/reference/agent.md)
  --version, --help

environment: NODE_NAME, the node's name in the cluster
)";

int Usage(const std::string& error) {
  std::fprintf(stderr, "bimetal-agent: %s; see --help\n", error.c_str());
  return kExitUsage;
}

// Blocks SIGTERM and SIGINT in every thread that is started later; Wait takes them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  int Wait() const {
    int number = 0;
    while (sigwait(&set_, &number) != 0) {
    }
    return number;
  }

 private:
  sigset_t set_{};
};

int Run(const AgentConfig& config, const std::string& node_name) {
  SetLogLevel(config.log_level);
  Log(LogLevel::kInfo, "agent starts",
      {{"version", BIMETAL_VERSION}, {"node", node_name}, {"config", DescribeAgentConfig(config)}});
  LogGrpcAsJson();
  const StopSignals signals;
  const SystemClock clock;
  InventoryOptions inventory;
  inventory.kernel_log = false;  // the diagnosis reads it
  // A container runtime puts NVIDIA's library into our own file tree, not under the root. A
  // simulated machine must never be answered for by real hardware.
  inventory.probe.system_library = !RootFiles(config.root).Exists("simulated");
  auto reader = std::make_shared<InventoryReader>(config.root, inventory);
  AgentParts parts;
  parts.config = config;
  parts.node_name = node_name;
  parts.version = BIMETAL_VERSION;
  parts.read_inventory = [reader, root = config.root] {
    DiagnoseOptions diagnose;
    diagnose.fleeting = false;
    diagnose.every_process = false;
    Inventory found = reader->Read();
    AddDiagnosis(root, found, diagnose);
    return found;
  };
  const auto metrics = AgentMetrics::Serve(config.metrics_listen);
  if (!metrics) {
    Log(LogLevel::kError, "agent cannot start", {{"reason", metrics.error().message}});
    return kExitFailure;
  }
  auto agent = Agent::Start(std::move(parts), clock, **metrics);
  if (!agent) {
    Log(LogLevel::kError, "agent cannot start", {{"reason", agent.error().message}});
    return kExitFailure;
  }
  const int number = signals.Wait();
  Log(LogLevel::kInfo, "agent stops", {{"signal", number}});
  if (!(*agent)->Stop()) Log(LogLevel::kWarning, "a look at the machine still hangs, leaving it");
  // A hanging look must not be destroyed, and the metrics server alone takes two seconds to end.
  _exit(EXIT_SUCCESS);
}

int Main(int argc, const char* const* argv) {
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::fputs(kHelp, stdout);
      return EXIT_SUCCESS;
    }
    if (flag == "--version") {
      std::puts("bimetal-agent " BIMETAL_VERSION);
      return EXIT_SUCCESS;
    }
    if (flag == "--config" && i + 1 < argc) {
      file = argv[++i];
    } else if (flag.starts_with("--config=")) {
      file = flag.substr(std::string_view("--config=").size());
    } else {
      return Usage("unknown flag or missing value: " + std::string(flag));
    }
  }
  if (file.empty()) return Usage("--config FILE is missing");
  const auto config = LoadAgentConfig(file);
  if (!config) {
    std::fprintf(stderr, "bimetal-agent: %s\n", config.error().message.c_str());
    return kExitFailure;
  }
  const char* node_name = std::getenv("NODE_NAME");
  if (node_name == nullptr || *node_name == '\0') {
    std::fputs(
        "bimetal-agent: environment variable NODE_NAME is not set; it must be the node's "
        "name, from the pod's spec.nodeName\n",
        stderr);
    return kExitFailure;
  }
  return Run(*config, node_name);
}

}  // namespace
}  // namespace bimetal::agent

int main(int argc, char** argv) {
  // The child that reads a vendor's devices is this program too.
  if (const auto probe = bimetal::agent::MaybeRunProbe(argc, argv)) return *probe;
  return bimetal::agent::Main(argc, argv);
}
