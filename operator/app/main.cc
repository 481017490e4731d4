// bimetal-operator: places GPU jobs, opens and shuts GPU nodes, bills device time.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>

#include "core/base/log.h"
#include "kube/config/config.h"
#include "kube/leader/leader.h"
#include "kube/transport/transport.h"
#include "operator/agents/service.h"
#include "operator/app/app.h"
#include "operator/app/cleanup.h"
#include "operator/config/config.h"
#include "operator/http/server.h"
#include "operator/metrics/metrics.h"
#include "operator/tls/identity_store.h"
#include "operator/tls/serving_identity.h"

namespace bimetal::op {
namespace {

constexpr std::string_view kUsage =
    R"(bimetal-operator: makes NVIDIA and AMD GPUs one schedulable, proven and priced resource

usage: bimetal-operator --config FILE [--kubeconfig FILE] [--cleanup]

  --config FILE      the operator's configuration (docs/reference/operator-config.md)
  --kubeconfig FILE  run outside of the cluster; without it the pod's service account is used
  --cleanup          take taints and labels off the nodes, delete what the operator made for itself,
                     and exit: for the end of a release
  --version          print the version
  --help             print this

environment: POD_NAME, POD_IP: who this replica is and where agents reach it (downward API)
)";

struct Flags {
  std::string config, kubeconfig;
  bool cleanup = false;
};

// Exit code for a usage error: sysexits' EX_USAGE.
constexpr int kUsageError = 64;

int ParseFlags(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--help") {
      std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
      return 0;
    }
    if (arg == "--version") {
      std::puts("bimetal-operator " BIMETAL_VERSION);
      return 0;
    }
    if (arg == "--cleanup") {
      flags->cleanup = true;
      continue;
    }
    std::string* target = arg == "--config"       ? &flags->config
                          : arg == "--kubeconfig" ? &flags->kubeconfig
                                                  : nullptr;
    if (target == nullptr || i + 1 == argc) {
      std::fprintf(stderr, "bimetal-operator: %s %s; see --help\n",
                   target == nullptr ? "unknown argument" : "missing value of", argv[i]);
      return kUsageError;
    }
    *target = argv[++i];
  }
  if (flags->config.empty()) {
    std::fputs("bimetal-operator: --config FILE is required; see --help\n", stderr);
    return kUsageError;
  }
  return -1;
}

std::string EnvOr(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
  return value != nullptr && *value != '\0' ? value : fallback;
}

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "bimetal-operator";
}

// "pod@ip:port": who leads, and where agents find it.
std::string LeaderIdentity(const Config& config) {
  const auto colon = config.grpc.listen.rfind(':');
  const std::string port =
      colon == std::string::npos ? "9443" : config.grpc.listen.substr(colon + 1);
  const std::string ip = EnvOr("POD_IP", "");
  return EnvOr("POD_NAME", HostName()) + (ip.empty() ? "" : "@" + ip + ":" + port);
}

std::string AddressOf(const std::string& identity) {
  const auto at = identity.find('@');
  return at == std::string::npos ? "" : identity.substr(at + 1);
}

// Gets the serving identity, as often as it takes: without it no agent can be heard.
ServingIdentity WaitForIdentity(KubeIdentityStore& store, const ServingOptions& options,
                                const Clock& clock) {
  while (true) {
    auto identity = EnsureServingIdentity(store, options, clock.Now());
    if (identity) return *identity;
    Log(LogLevel::kWarning, "no serving certificate yet", {{"error", identity.error().message}});
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

int Run(const Flags& flags) {
  auto config = LoadConfig(flags.config);
  if (!config) {
    std::fprintf(stderr, "bimetal-operator: %s\n", config.error().message.c_str());
    return 1;
  }
  SetLogLevel(config->log.level);
  Log(LogLevel::kInfo, "starting", {{"version", BIMETAL_VERSION}, {"config", Describe(*config)}});
  auto cluster =
      flags.kubeconfig.empty() ? kube::InClusterConfig() : kube::KubeconfigFile(flags.kubeconfig);
  if (!cluster) {
    std::fprintf(stderr, "bimetal-operator: %s\n", cluster.error().message.c_str());
    return 1;
  }
  // Signals are taken by the main thread with sigwait, so every other thread must have them
  // blocked.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const SystemClock clock;
  auto transport = kube::MakeTransport(*cluster);
  if (!transport) {
    std::fprintf(stderr, "bimetal-operator: %s\n", transport.error().message.c_str());
    return 1;
  }
  auto client =
      std::make_shared<kube::Client>(std::shared_ptr<kube::Transport>(std::move(*transport)));
  if (flags.cleanup) {
    const auto cleaned = CleanUp(*client, config->name_space, config->leader_election.lease_name);
    if (!cleaned) std::fprintf(stderr, "bimetal-operator: %s\n", cleaned.error().message.c_str());
    return cleaned ? 0 : 1;
  }
  Metrics metrics(BIMETAL_VERSION);
  App app(clock, client, *config, metrics);
  std::jthread loop_thread;

  const std::string identity = LeaderIdentity(*config);
  kube::LeaderConfig leader_config;
  leader_config.ns = config->name_space;
  leader_config.name = config->leader_election.lease_name;
  leader_config.identity = identity;
  leader_config.lease_duration = config->leader_election.lease_duration;
  std::atomic<bool> leading{!config->leader_election.enabled};
  std::atomic<bool> stopping{false};
  const auto lead = [&] {
    Log(LogLevel::kInfo, "leading", {{"identity", identity}});
    leading = true;
    app.Start();
    loop_thread = std::jthread([&app] { app.Run(); });
  };
  kube::LeaderElector elector(client, leader_config, {.on_started = lead, .on_stopped = [&] {
                                                        if (stopping) return;
                                                        // Another replica decides now; state of
                                                        // ours must not outlive that.
                                                        Log(LogLevel::kError,
                                                            "leadership lost, ending", {});
                                                        std::_Exit(1);
                                                      }});

  KubeIdentityStore identity_store(*client, config->name_space);
  ServingOptions serving;
  serving.name_space = config->name_space;
  serving.service_name = config->grpc.service_name;
  ServingIdentity served = WaitForIdentity(identity_store, serving, clock);
  auto reviewer = MakeKubeTokenReviewer(*client);
  AuthenticatorOptions auth;
  auth.audience = config->agent.audience;
  auth.service_account = config->agent.service_account;
  Authenticator authenticator(auth, *reviewer, clock);
  AgentServerOptions server_options;
  server_options.listen = config->grpc.listen;
  server_options.identity = served.server;
  auto agents = AgentServer::Start(
      server_options, authenticator,
      {.report = [&app](api::ReportNodeRequest request) { return app.Report(std::move(request)); },
       .leader_address = [&]() -> std::optional<std::string> {
         if (leading) return std::nullopt;
         return AddressOf(elector.holder());
       },
       .count = [&metrics](std::string_view result) { metrics.CountAgentReport(result); }});
  if (!agents) {
    std::fprintf(stderr, "bimetal-operator: %s\n", agents.error().message.c_str());
    return 1;
  }
  HttpServerOptions http_options;
  http_options.listen = config->http.listen;
  http_options.metrics = [&metrics](const std::string&, std::string* type) {
    *type = std::string(kMetricsContentType);
    return metrics.Expose();
  };
  http_options.healthy = [&]() -> Status { return leading ? app.Healthy() : Status{}; };
  http_options.ready = [&]() -> Status {
    if (leading && !app.Deciding())
      return Fail(ErrorCode::kUnavailable, "the watches have not synced yet");
    return {};
  };
  auto http = HttpServer::Start(std::move(http_options));
  if (!http) {
    std::fprintf(stderr, "bimetal-operator: %s\n", http.error().message.c_str());
    return 1;
  }
  if (config->leader_election.enabled)
    elector.Start();
  else
    lead();

  while (true) {
    timespec wait{.tv_sec = 60, .tv_nsec = 0};
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal > 0) break;
    if (clock.Now() >= served.renew_at) {
      if (auto renewed = EnsureServingIdentity(identity_store, serving, clock.Now()); renewed) {
        served = *renewed;
        if (const auto set = (*agents)->SetIdentity(served.server); !set) {
          Log(LogLevel::kError, "certificate could not be changed",
              {{"error", set.error().message}});
        }
      }
    }
  }
  Log(LogLevel::kInfo, "stopping", {});
  stopping = true;
  (*agents)->Stop();
  app.Stop();
  if (loop_thread.joinable()) loop_thread.join();
  elector.Stop();
  (*http)->Stop();
  return 0;
}

}  // namespace
}  // namespace bimetal::op

int main(int argc, char** argv) {
  bimetal::op::Flags flags;
  if (const int code = bimetal::op::ParseFlags(argc, argv, &flags); code >= 0) return code;
  return bimetal::op::Run(flags);
}
