#pragma once

#include <string>
#include <string_view>

#include "core/base/log.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// How the agent reaches the operator.
struct OperatorEndpoint {
  std::string address;          // host:port
  std::string tls_server_name;  // name that the certificate must carry; empty: the address's host
  std::string ca_file = "/etc/bimetal/ca/ca.crt";
  std::string token_file = "/var/run/secrets/bimetal/token";
};

// Everything that agent.yaml says, with the defaults (docs/reference/agent.md). A plain value.
struct AgentConfig {
  OperatorEndpoint operator_endpoint;
  std::string root = "/host";  // where the machine's own file tree is seen
  std::string state_dir = "/var/lib/bimetal";
  std::string socket = "/run/bimetal/agent.sock";
  std::string device_plugin_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  Millis report_interval = Seconds(10);
  Millis enumerate_interval = Seconds(5);
  std::string metrics_listen = "0.0.0.0:9400";
  LogLevel log_level = LogLevel::kInfo;
};

// Reads YAML text. Errors (kInvalid) name the key's path and what it may hold: unknown and repeated
// keys, values out of range, missing operator.address, text that is no YAML.
Result<AgentConfig> ParseAgentConfig(std::string_view yaml);

// Reads a file of at most 1 MiB. Errors: those of ParseAgentConfig, kNotFound, kData; with the
// file's name.
Result<AgentConfig> LoadAgentConfig(const std::string& file);

// The effective configuration as one line, for the log at start. Holds no secret.
std::string DescribeAgentConfig(const AgentConfig& config);

}  // namespace bimetal::agent
