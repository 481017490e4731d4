#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/model/fleet.h"

namespace bimetal::op {

// The operator's configuration: one YAML file, read once at start. Every field has a default;
// docs/reference/operator-config.md says what each is for and what it may be. Immutable once
// parsed.
struct LeaderElectionConfig {
  bool enabled = true;
  std::string lease_name = "bimetal-operator";
  Millis lease_duration = Seconds(8);  // whole seconds
};

struct GrpcConfig {
  std::string listen = "0.0.0.0:9443";
  std::string service_name;  // default: bimetal-operator.<namespace>.svc
};

struct HttpConfig {
  std::string listen = "0.0.0.0:8080";
};

struct AgentConfig {
  // Default: system:serviceaccount:<namespace>:bimetal-agent.
  std::string service_account;
  std::string audience = "bimetal-operator";
  Millis stale_after = Seconds(30);
};

enum class PullPolicy { kAlways, kIfNotPresent, kNever };

struct ValidationConfig {
  std::string service_account_name = "bimetal-validation";
  // Empty: the vendor's devices cannot be validated and stay shut.
  std::string nvidia_image, amd_image;
  PullPolicy pull_policy = PullPolicy::kIfNotPresent;
  std::string socket_host_path = "/run/bimetal";
  bool simulation = false;
  std::string simulation_host_path = "/var/lib/bimetal/machine";
  std::vector<core::Toleration> tolerations;
};

struct JobsConfig {
  std::string priority_class_name = "bimetal-job";
  Millis unschedulable_after = Seconds(5);
  Millis image_pull_grace = Minutes(2);
  Millis node_lost_after = Seconds(60);
};

struct SchedulerConfig {
  std::string record_folder;  // empty: cycles are not recorded
  int recorded_cycles = 20;   // files kept
};

enum class DevicePlugin { kVendor, kBimetal };

// The objects that the operator makes on a cluster that has none of them.
struct DefaultsConfig {
  bool queue = true;
  bool pools = true;
  DevicePlugin device_plugin = DevicePlugin::kVendor;
  bool enforce = true;             // gate of the pools: Enforce, else Observe
  std::string price_book;          // empty: none
  std::string validation_profile;  // of the pools; empty: the built-in one
};

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
};

struct Config {
  std::string name_space = "bimetal-system";
  LeaderElectionConfig leader_election;
  GrpcConfig grpc;
  HttpConfig http;
  AgentConfig agent;
  ValidationConfig validation;
  JobsConfig jobs;
  SchedulerConfig scheduler;
  DefaultsConfig defaults;
  LogConfig log;
};

// "Always" | "IfNotPresent" | "Never", as Kubernetes writes it.
std::string_view PullPolicyName(PullPolicy policy);
// "Vendor" | "Bimetal".
std::string_view DevicePluginName(DevicePlugin plugin);

// Reads one YAML document; an empty one is the defaults. Error kInvalid names the path of the key:
// "jobs.unschedulableAfter: "2h" is not between 1s and 10m". Unknown and doubled keys are errors.
Result<Config> ParseConfig(std::string_view yaml);

// ParseConfig of a file of at most 1 MiB. Error kNotFound or kUnavailable where it cannot be read.
Result<Config> LoadConfig(const std::string& path);

// The effective configuration as one line of JSON, keys as in the file. Holds no secret.
std::string Describe(const Config& config);

}  // namespace bimetal::op
