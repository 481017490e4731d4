#include <string>
#include <string_view>

#include "operator/config/config.h"

namespace bimetal::op {
namespace {

// Writes nested JSON objects, keys in the order of the calls.
class Writer {
 public:
  void Begin(std::string_view key) {
    Key(key);
    out_ += '{';
  }
  void End() { out_ += '}'; }
  void Text(std::string_view key, std::string_view value) {
    Key(key);
    out_ += '"';
    AppendJsonEscaped(out_, value);
    out_ += '"';
  }
  void TextIfAny(std::string_view key, std::string_view value) {
    if (!value.empty()) Text(key, value);
  }
  void Bool(std::string_view key, bool value) {
    Key(key);
    out_ += value ? "true" : "false";
  }
  void Number(std::string_view key, std::int64_t value) {
    Key(key);
    out_ += std::to_string(value);
  }
  void Duration(std::string_view key, Millis value) { Text(key, FormatDuration(value)); }
  void Key(std::string_view key) {
    if (out_.back() != '{' && out_.back() != '[') out_ += ',';
    if (key.empty()) return;
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }
  std::string& out() { return out_; }

 private:
  std::string out_ = "{";
};

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

void WriteValidation(Writer& w, const ValidationConfig& validation) {
  w.Begin("validation");
  w.Text("serviceAccountName", validation.service_account_name);
  w.Begin("images");
  w.Text("nvidia", validation.nvidia_image);
  w.Text("amd", validation.amd_image);
  w.End();
  w.Text("pullPolicy", PullPolicyName(validation.pull_policy));
  w.Text("socketHostPath", validation.socket_host_path);
  w.Bool("simulation", validation.simulation);
  w.Text("simulationHostPath", validation.simulation_host_path);
  w.Key("tolerations");
  w.out() += '[';
  for (const auto& toleration : validation.tolerations) {
    w.Begin("");
    w.TextIfAny("key", toleration.key);
    w.Text("operator", toleration.op.empty() ? "Equal" : toleration.op);
    w.TextIfAny("value", toleration.value);
    w.TextIfAny("effect", toleration.effect);
    w.End();
  }
  w.out() += ']';
  w.End();
}

}  // namespace

std::string Describe(const Config& config) {
  Writer w;
  w.Text("namespace", config.name_space);
  w.Begin("leaderElection");
  w.Bool("enabled", config.leader_election.enabled);
  w.Text("leaseName", config.leader_election.lease_name);
  w.Duration("leaseDuration", config.leader_election.lease_duration);
  w.End();
  w.Begin("grpc");
  w.Text("listen", config.grpc.listen);
  w.Text("serviceName", config.grpc.service_name);
  w.End();
  w.Begin("http");
  w.Text("listen", config.http.listen);
  w.End();
  w.Begin("agent");
  w.Text("serviceAccount", config.agent.service_account);
  w.Text("audience", config.agent.audience);
  w.Duration("staleAfter", config.agent.stale_after);
  w.End();
  WriteValidation(w, config.validation);
  w.Begin("jobs");
  w.Text("priorityClassName", config.jobs.priority_class_name);
  w.Duration("unschedulableAfter", config.jobs.unschedulable_after);
  w.Duration("imagePullGrace", config.jobs.image_pull_grace);
  w.Duration("nodeLostAfter", config.jobs.node_lost_after);
  w.End();
  w.Begin("scheduler");
  w.Text("recordFolder", config.scheduler.record_folder);
  w.Number("recordedCycles", config.scheduler.recorded_cycles);
  w.End();
  w.Begin("defaults");
  w.Bool("queue", config.defaults.queue);
  w.Bool("pools", config.defaults.pools);
  w.Text("gate", config.defaults.enforce ? "Enforce" : "Observe");
  w.Text("devicePlugin", DevicePluginName(config.defaults.device_plugin));
  w.Text("priceBook", config.defaults.price_book);
  w.Text("validationProfile", config.defaults.validation_profile);
  w.End();
  w.Begin("log");
  w.Text("level", LevelName(config.log.level));
  w.End();
  w.End();
  return std::move(w.out());
}

}  // namespace bimetal::op
