#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/config/config.h"
#include "agent/devices/inventory.h"
#include "agent/metrics/metrics.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

// What an agent is made of.
struct AgentParts {
  AgentConfig config;
  std::string node_name;
  std::string version;
  std::function<Inventory()> read_inventory;  // called from one thread; may block
  // A look at the machine that takes longer than this shuts every device.
  Millis enumerate_deadline = Minutes(1);
  Millis plugin_poll = Seconds(1);
  Millis plugin_stream_grace = Seconds(5);
  Millis tick = Seconds(1);
  Millis order_wait = Seconds(20);  // see VerdictServerOptions
};

// The node's agent: reports devices and verdicts to the operator, carries its orders out towards
// the kubelet, and keeps them on disk. One loop thread owns all state; the rest are threads that
// wait for the outside. Thread-safe.
class Agent {
 public:
  // Everything runs when it returns. `clock` and `metrics` must outlive it. Error: the socket
  // cannot be opened.
  static Result<std::unique_ptr<Agent>> Start(AgentParts parts, const Clock& clock,
                                              AgentMetrics& metrics);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Ends everything within two seconds. False where the reader of the machine does not come back:
  // the process should end without destroying it. Idempotent.
  bool Stop();

 private:
  class Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
