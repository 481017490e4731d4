#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/agent.pb.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "operator/agents/authenticator.h"
#include "operator/tls/certificates.h"

namespace bimetal::op {

struct AgentServerOptions {
  std::string listen = "0.0.0.0:9443";  // port 0: any free one
  KeyPair identity;                     // the server's certificate and key
  std::size_t max_message_bytes = std::size_t{4} << 20;
  int max_threads = 64;  // calls in progress; more are answered RESOURCE_EXHAUSTED
  Millis shutdown_grace = Seconds(2);
};

// What the service calls. All are called from many threads at once.
struct AgentServerHooks {
  // Takes a checked report of an authenticated node and gives the reply. May block, bounded: the
  // agent waits. Errors become statuses of the same meaning.
  std::function<Result<api::ReportNodeReply>(api::ReportNodeRequest)> report;
  // nullopt: this replica leads. Otherwise the leader's "host:port", empty while unknown.
  std::function<std::optional<std::string>()> leader_address;
  // Optional. Counts one call by its result, one of kAgentReportResults (metrics/metrics.h).
  std::function<void(std::string_view result)> count;
};

// The gRPC service of the agents (api/agent.proto), over TLS, with the standard health service.
// Thread-safe. The destructor stops it.
class AgentServer {
 public:
  // Listens when it returns. `authenticator` must outlive it. Error kUnavailable where the address
  // cannot be bound, kInvalid where the identity is none.
  static Result<std::unique_ptr<AgentServer>> Start(AgentServerOptions options,
                                                    Authenticator& authenticator,
                                                    AgentServerHooks hooks);
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  int port() const;

  // Serves new connections with `identity`; calls in progress end in peace. There is no moment at
  // which nothing listens.
  Status SetIdentity(KeyPair identity);

  // Refuses new calls, lets those in progress end within the grace period, then returns.
  // Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit AgentServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::op
