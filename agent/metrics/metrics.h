#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "agent/devices/source.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// How many devices of one vendor are in which state.
struct DeviceCounts {
  int healthy = 0;
  int unhealthy = 0;
  int unknown = 0;
  int offered = 0;  // to the kubelet, as Healthy
};

// How many findings there are, by code, severity and vendor (empty: the node).
using FindingCounts = std::map<std::tuple<std::string, std::string, std::string>, int>;

// Every metric family of the agent, served at /metrics over HTTP:
//   bimetal_agent_devices{vendor,health}       devices seen, by health
//   bimetal_agent_offered_devices{vendor}      devices that the kubelet may give to pods
//   bimetal_agent_plugin_registered{vendor}    1: our device plug-in is registered, 0: it is not;
//                                              absent where it is not to be served
//   bimetal_agent_report_age_seconds           since the operator last took a report; absent until
//                                              it took one
//   bimetal_agent_report_failures_total        reports that were not taken
//   bimetal_agent_enumerate_seconds            how long one look at the machine took (histogram)
//   bimetal_agent_findings{code,severity,vendor}
//                                              what is wrong now; codes are those of rules.csv
//   bimetal_agent_pending_runs                 validation runs that the operator has not taken yet
// Thread-safe.
class AgentMetrics {
 public:
  // Error kUnavailable: the address cannot be listened on.
  static Result<std::unique_ptr<AgentMetrics>> Serve(const std::string& listen);
  ~AgentMetrics();
  AgentMetrics(const AgentMetrics&) = delete;
  AgentMetrics& operator=(const AgentMetrics&) = delete;

  // The port that is listened on, also where the address said 0.
  int port() const;

  void SetDevices(Vendor vendor, const DeviceCounts& counts);
  void SetPluginRegistered(Vendor vendor, std::optional<bool> registered);
  void SetReportAge(std::optional<Millis> age);
  // `total` of this process; never falls.
  void SetReportFailures(std::int64_t total);
  void ObserveEnumeration(Millis took);
  void SetPendingRuns(int runs);
  // All of them; series that are not among them go.
  void SetFindings(const FindingCounts& counts);

 private:
  struct Impl;
  explicit AgentMetrics(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
