#include "operator/config/config.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>

#include <yaml-cpp/yaml.h>

#include "kube/config/yaml_check.h"
#include "operator/config/section.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxTolerations = 64;

using Wrong = std::optional<std::string>;

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= 63 && IsLowerAlnum(text.front()) &&
         IsLowerAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

// Dot-separated labels, as the API server demands of most names.
bool IsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (std::size_t begin = 0;;) {
    const auto dot = text.find('.', begin);
    if (!IsLabel(text.substr(begin, dot - begin))) return false;
    if (dot == std::string_view::npos) return true;
    begin = dot + 1;
  }
}

Wrong Label(const std::string& text) {
  return IsLabel(text) ? Wrong() : Wrong("is not a DNS label");
}

Wrong Subdomain(const std::string& text) {
  return IsSubdomain(text) ? Wrong() : Wrong("is not a DNS name");
}

Wrong SubdomainOrEmpty(const std::string& text) { return text.empty() ? Wrong() : Subdomain(text); }

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

Wrong Word(const std::string& text) {
  if (!text.empty() && text.size() <= 253 && IsPrintable(text)) return {};
  return "is not 1 to 253 printable characters without spaces";
}

Wrong Image(const std::string& text) {
  if (text.size() <= 1024 && IsPrintable(text)) return {};
  return "is not the reference of an image";
}

Wrong AbsolutePath(const std::string& text) {
  if (text.size() > 1 && text.size() <= 1024 && text.front() == '/' &&
      text.find("/../") == std::string::npos && !text.ends_with("/..") &&
      text.find('\0') == std::string::npos) {
    return {};
  }
  return "is not an absolute path without \"..\"";
}

Wrong AbsolutePathOrEmpty(const std::string& text) {
  return text.empty() ? Wrong() : AbsolutePath(text);
}

Wrong ServiceAccount(const std::string& text) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (text.starts_with(kPrefix)) {
    const std::string_view rest = std::string_view(text).substr(kPrefix.size());
    const auto colon = rest.find(':');
    if (colon != std::string_view::npos && IsLabel(rest.substr(0, colon)) &&
        IsSubdomain(rest.substr(colon + 1))) {
      return {};
    }
  }
  return "is not of the form system:serviceaccount:NAMESPACE:NAME";
}

Wrong Listen(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon != std::string::npos) {
    const std::string_view host = std::string_view(text).substr(0, colon);
    const char* begin = text.data() + colon + 1;
    const char* end = text.data() + text.size();
    int port = -1;
    const auto [stop, problem] = std::from_chars(begin, end, port);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const bool host_ok = bracketed || (!host.empty() && host.find(':') == host.npos);
    if (host_ok && IsPrintable(host) && problem == std::errc() && stop == end && port >= 0 &&
        port <= 65535) {
      return {};
    }
  }
  return "is not of the form HOST:PORT, or [ADDRESS]:PORT for IPv6";
}

void ReadToleration(Section& section, Config& config) {
  core::Toleration toleration;
  const auto any = [](const std::string& text) {
    return text.size() <= 317 && IsPrintable(text) ? Wrong() : Wrong("is not a valid value");
  };
  section.Read("key", &toleration.key, any);
  const std::vector<std::string_view> operators = {"Exists", "Equal"};
  if (const auto i = section.ReadChoice("operator", operators)) toleration.op = operators[*i];
  section.Read("value", &toleration.value, any);
  const std::vector<std::string_view> effects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  if (const auto i = section.ReadChoice("effect", effects)) toleration.effect = effects[*i];
  if (toleration.key.empty() && toleration.op != "Exists") {
    section.Reject("has no key, which needs operator: Exists");
  }
  if (toleration.op == "Exists" && !toleration.value.empty()) {
    section.Reject("has a value, which operator: Exists forbids");
  }
  config.validation.tolerations.push_back(std::move(toleration));
}

void ReadValidation(Section& section, Config& config) {
  ValidationConfig& out = config.validation;
  section.Read("serviceAccountName", &out.service_account_name, Subdomain);
  section.ReadSection("images", [&](Section& images) {
    images.Read("nvidia", &out.nvidia_image, Image);
    images.Read("amd", &out.amd_image, Image);
  });
  if (const auto i = section.ReadChoice("pullPolicy", {"Always", "IfNotPresent", "Never"})) {
    out.pull_policy = static_cast<PullPolicy>(*i);
  }
  section.Read("socketHostPath", &out.socket_host_path, AbsolutePath);
  section.Read("simulation", &out.simulation);
  section.Read("simulationHostPath", &out.simulation_host_path, AbsolutePath);
  section.ReadList("tolerations", kMaxTolerations,
                   [&](Section& entry) { ReadToleration(entry, config); });
}

void ReadLeaderElection(Section& section, LeaderElectionConfig& out) {
  section.Read("enabled", &out.enabled);
  section.Read("leaseName", &out.lease_name, Subdomain);
  section.Read("leaseDuration", &out.lease_duration, Seconds(3), Minutes(5));
  if (out.lease_duration.v % 1000 != 0) {
    section.Reject("leaseDuration is not in whole seconds");
  }
}

void ReadDocument(Section& root, Config& config) {
  root.Read("namespace", &config.name_space, Label);
  root.ReadSection("leaderElection",
                   [&](Section& s) { ReadLeaderElection(s, config.leader_election); });
  root.ReadSection("grpc", [&](Section& s) {
    s.Read("listen", &config.grpc.listen, Listen);
    s.Read("serviceName", &config.grpc.service_name, Subdomain);
  });
  root.ReadSection("http", [&](Section& s) { s.Read("listen", &config.http.listen, Listen); });
  root.ReadSection("agent", [&](Section& s) {
    s.Read("serviceAccount", &config.agent.service_account, ServiceAccount);
    s.Read("audience", &config.agent.audience, Word);
    s.Read("staleAfter", &config.agent.stale_after, Seconds(2), Minutes(60));
  });
  root.ReadSection("validation", [&](Section& s) { ReadValidation(s, config); });
  root.ReadSection("jobs", [&](Section& s) {
    s.Read("priorityClassName", &config.jobs.priority_class_name, Subdomain);
    s.Read("unschedulableAfter", &config.jobs.unschedulable_after, Seconds(1), Minutes(10));
    s.Read("imagePullGrace", &config.jobs.image_pull_grace, Seconds(0), Minutes(60));
    s.Read("nodeLostAfter", &config.jobs.node_lost_after, Seconds(1), Minutes(60));
  });
  root.ReadSection("scheduler", [&](Section& s) {
    s.Read("recordFolder", &config.scheduler.record_folder, AbsolutePathOrEmpty);
    s.Read("recordedCycles", &config.scheduler.recorded_cycles, 1, 1000);
  });
  root.ReadSection("defaults", [&](Section& s) {
    s.Read("queue", &config.defaults.queue);
    s.Read("pools", &config.defaults.pools);
    if (const auto i = s.ReadChoice("gate", {"Enforce", "Observe"})) {
      config.defaults.enforce = *i == 0;
    }
    if (const auto i = s.ReadChoice("devicePlugin", {"Vendor", "Bimetal"})) {
      config.defaults.device_plugin = static_cast<DevicePlugin>(*i);
    }
    s.Read("priceBook", &config.defaults.price_book, SubdomainOrEmpty);
    s.Read("validationProfile", &config.defaults.validation_profile, SubdomainOrEmpty);
  });
  root.ReadSection("log", [&](Section& s) {
    if (const auto i = s.ReadChoice("level", {"debug", "info", "warn", "error"})) {
      config.log.level = static_cast<LogLevel>(*i);
    }
  });
  root.Finish();
}

}  // namespace

std::string_view PullPolicyName(PullPolicy policy) {
  switch (policy) {
    case PullPolicy::kAlways:
      return "Always";
    case PullPolicy::kIfNotPresent:
      return "IfNotPresent";
    case PullPolicy::kNever:
      return "Never";
  }
  return "IfNotPresent";
}

std::string_view DevicePluginName(DevicePlugin plugin) {
  return plugin == DevicePlugin::kBimetal ? "Bimetal" : "Vendor";
}

Result<Config> ParseConfig(std::string_view yaml) {
  const std::string text(yaml);
  BIMETAL_TRY(kube::CheckYaml(text));
  Config config;
  std::optional<Error> error;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) return Fail(ErrorCode::kInvalid, "has more than one document");
    Section root(documents.empty() ? YAML::Node() : documents.front(), "", &error);
    ReadDocument(root, config);
  } catch (const YAML::ParserException& e) {
    return Fail(ErrorCode::kInvalid, "line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInvalid, std::string("not YAML: ") + e.what());
  }
  if (error) return tl::unexpected<Error>(*std::move(error));
  if (config.grpc.service_name.empty()) {
    config.grpc.service_name = "bimetal-operator." + config.name_space + ".svc";
  }
  if (config.agent.service_account.empty()) {
    config.agent.service_account = "system:serviceaccount:" + config.name_space + ":bimetal-agent";
  }
  return config;
}

Result<Config> LoadConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(ErrorCode::kNotFound, "configuration " + path + ": cannot be opened");
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Fail(ErrorCode::kUnavailable, "configuration " + path + ": read failed");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    return Fail(ErrorCode::kInvalid, "configuration " + path + ": larger than 1 MiB");
  }
  auto config = ParseConfig(text);
  if (!config) {
    return tl::unexpected<Error>(WithContext(std::move(config).error(), "configuration " + path));
  }
  return config;
}

}  // namespace bimetal::op
