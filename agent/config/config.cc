#include "agent/config/config.h"

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <set>
#include <utility>

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxFile = 1024UL * 1024UL;
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un.sun_path less its final zero
constexpr std::array<std::pair<std::string_view, LogLevel>, 4> kLevels = {
    {{"debug", LogLevel::kDebug},
     {"info", LogLevel::kInfo},
     {"warning", LogLevel::kWarning},
     {"error", LogLevel::kError}}};

using Reader = std::function<Status(const YAML::Node&, const std::string& path)>;

// Gives every key of a map to its reader; a key without one or seen twice is an error.
Status ReadMap(const YAML::Node& node, const std::string& path,
               std::initializer_list<std::pair<std::string_view, Reader>> readers) {
  if (node.IsNull()) return {};
  if (!node.IsMap()) {
    return Fail(ErrorCode::kInvalid, (path.empty() ? "the file" : path) + ": must be a map");
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      return Fail(ErrorCode::kInvalid, (path.empty() ? "the file" : path) + ": a key is no text");
    }
    const std::string key = entry.first.Scalar();
    const std::string at = path.empty() ? key : path + "." + key;
    if (!seen.insert(key).second) return Fail(ErrorCode::kInvalid, at + ": given twice");
    const auto* reader = readers.begin();
    while (reader != readers.end() && reader->first != key) ++reader;
    if (reader == readers.end()) {
      std::string known;
      for (const auto& [name, unused] : readers)
        known += (known.empty() ? "" : ", ") + std::string(name);
      return Fail(ErrorCode::kInvalid, at + ": unknown key, known here: " + known);
    }
    BIMETAL_TRY(reader->second(entry.second, at));
  }
  return {};
}

Result<std::string> Text(const YAML::Node& node, const std::string& path) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    return Fail(ErrorCode::kInvalid, path + ": must be text");
  }
  for (const char c : node.Scalar()) {
    if (static_cast<unsigned char>(c) < 0x20) {
      return Fail(ErrorCode::kInvalid, path + ": holds a control character");
    }
  }
  return node.Scalar();
}

Reader TextInto(std::string& out) {
  return [&out](const YAML::Node& node, const std::string& path) -> Status {
    BIMETAL_TRY_ASSIGN(out, Text(node, path));
    return {};
  };
}

Reader PathInto(std::string& out) {
  return [&out](const YAML::Node& node, const std::string& path) -> Status {
    BIMETAL_TRY_ASSIGN(out, Text(node, path));
    if (out.front() != '/') {
      return Fail(ErrorCode::kInvalid, path + ": must be an absolute path, is \"" + out + "\"");
    }
    return {};
  };
}

Reader SocketPathInto(std::string& out) {
  return [&out](const YAML::Node& node, const std::string& path) -> Status {
    BIMETAL_TRY(PathInto(out)(node, path));
    if (out.size() > kMaxSocketPath) {
      return Fail(ErrorCode::kInvalid, path + ": a socket's path has at most 107 bytes");
    }
    return {};
  };
}

// host:port with a port of 0 (where allowed) or 1 to 65535; IPv6 hosts in brackets.
Reader HostPortInto(std::string& out, unsigned min_port) {
  return [&out, min_port](const YAML::Node& node, const std::string& path) -> Status {
    BIMETAL_TRY_ASSIGN(out, Text(node, path));
    const std::size_t colon = out.rfind(':');
    unsigned port = 0;
    bool good = colon != std::string::npos && colon > 0;
    if (good) {
      const char* const end = out.data() + out.size();
      const auto [stop, error] = std::from_chars(out.data() + colon + 1, end, port);
      good = error == std::errc() && stop == end && port >= min_port && port <= 65535;
      const std::string host = out.substr(0, colon);
      const bool bracketed = host.front() == '[' && host.back() == ']';
      good = good && (bracketed || host.find(':') == std::string::npos);
      good = good && host.find_first_of(" /") == std::string::npos;
    }
    if (!good) {
      return Fail(ErrorCode::kInvalid, path + ": must be host:port, is \"" + out + "\"");
    }
    return {};
  };
}

Reader DurationInto(Millis& out, Millis min, Millis max) {
  return [&out, min, max](const YAML::Node& node, const std::string& path) -> Status {
    BIMETAL_TRY_ASSIGN(const std::string text, Text(node, path));
    const auto parsed = ParseDuration(text);
    if (!parsed || *parsed < min || *parsed > max) {
      return Fail(ErrorCode::kInvalid, path + ": must be a duration from " + FormatDuration(min) +
                                           " to " + FormatDuration(max) + ", is \"" + text + "\"");
    }
    out = *parsed;
    return {};
  };
}

Status ReadLevel(const YAML::Node& node, const std::string& path, LogLevel& out) {
  BIMETAL_TRY_ASSIGN(const std::string text, Text(node, path));
  for (const auto& [name, level] : kLevels) {
    if (name == text) {
      out = level;
      return {};
    }
  }
  return Fail(ErrorCode::kInvalid, path + ": must be debug, info, warning or error");
}

Status ReadTop(const YAML::Node& top, AgentConfig& c) {
  OperatorEndpoint& op = c.operator_endpoint;
  return ReadMap(
      top, "",
      {{"operator",
        [&](const YAML::Node& n, const std::string& p) {
          return ReadMap(n, p,
                         {{"address", HostPortInto(op.address, 1)},
                          {"tlsServerName", TextInto(op.tls_server_name)},
                          {"caFile", PathInto(op.ca_file)},
                          {"tokenFile", PathInto(op.token_file)}});
        }},
       {"root", PathInto(c.root)},
       {"stateDir", PathInto(c.state_dir)},
       {"socket", SocketPathInto(c.socket)},
       {"kubelet",
        [&](const YAML::Node& n, const std::string& p) {
          return ReadMap(n, p,
                         {{"devicePluginDir", PathInto(c.device_plugin_dir)},
                          {"podResourcesSocket", SocketPathInto(c.pod_resources_socket)}});
        }},
       {"report",
        [&](const YAML::Node& n, const std::string& p) {
          return ReadMap(
              n, p,
              {{"interval", DurationInto(c.report_interval, Seconds(1), Minutes(5))},
               {"enumerateInterval", DurationInto(c.enumerate_interval, Seconds(1), Minutes(10))}});
        }},
       {"metrics",
        [&](const YAML::Node& n, const std::string& p) {
          return ReadMap(n, p, {{"listen", HostPortInto(c.metrics_listen, 0)}});
        }},
       {"log", [&](const YAML::Node& n, const std::string& p) {
          return ReadMap(n, p, {{"level", [&](const YAML::Node& level, const std::string& at) {
                                   return ReadLevel(level, at, c.log_level);
                                 }}});
        }}});
}

}  // namespace

Result<AgentConfig> ParseAgentConfig(std::string_view yaml) {
  AgentConfig config;
  try {
    BIMETAL_TRY(ReadTop(YAML::Load(std::string(yaml)), config));
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kInvalid, std::string("not valid YAML: ") + error.what());
  }
  if (config.operator_endpoint.address.empty()) {
    return Fail(ErrorCode::kInvalid, "operator.address: must be given, as host:port");
  }
  return config;
}

Result<AgentConfig> LoadAgentConfig(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return Fail(ErrorCode::kNotFound, "configuration " + file + ": cannot be opened");
  std::string text(kMaxFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return Fail(ErrorCode::kData, "configuration " + file + ": cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxFile) {
    return Fail(ErrorCode::kData, "configuration " + file + ": larger than 1 MiB");
  }
  auto config = ParseAgentConfig(text);
  if (!config) return tl::unexpected(WithContext(config.error(), "configuration " + file));
  return config;
}

std::string DescribeAgentConfig(const AgentConfig& config) {
  const OperatorEndpoint& op = config.operator_endpoint;
  std::string level;
  for (const auto& [name, value] : kLevels) {
    if (value == config.log_level) level = name;
  }
  return "operator.address=" + op.address + " operator.tlsServerName=" + op.tls_server_name +
         " operator.caFile=" + op.ca_file + " operator.tokenFile=" + op.token_file +
         " root=" + config.root + " stateDir=" + config.state_dir + " socket=" + config.socket +
         " kubelet.devicePluginDir=" + config.device_plugin_dir +
         " kubelet.podResourcesSocket=" + config.pod_resources_socket +
         " report.interval=" + FormatDuration(config.report_interval) +
         " report.enumerateInterval=" + FormatDuration(config.enumerate_interval) +
         " metrics.listen=" + config.metrics_listen + " log.level=" + level;
}

}  // namespace bimetal::agent
