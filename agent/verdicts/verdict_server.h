#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/verdicts/run_reader.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace bimetal::agent {

struct VerdictServerOptions {
  std::string path;               // of the Unix socket; its folder is made where it is missing
  Millis deadline = Seconds(30);  // for all lines of one connection
  // How long a complete run waits for the order that names it: the pod may be faster than the
  // operator's next reply. A client that gave up meanwhile frees its place at once.
  Millis order_wait = Seconds(20);
  int max_connections = 8;
};

// What the server asks of the agent. All are called from connections' threads and may come at once.
struct VerdictHooks {
  // An order names this run. Quick.
  std::function<bool(const std::string& run)> is_expected;
  // A complete run came that no order names yet; the next report should not wait. Quick.
  std::function<void()> want_orders;
  // Takes a complete run. May block for seconds. An error is told to the client.
  std::function<Status(const ReceivedRun& run, TimePoint began, TimePoint ended)> accept;
};

// Takes verdicts from validation pods of this node on a Unix socket: JSON lines, then one reply
// line {"ok":true} or {"ok":false,"error":"..."} (docs/reference/agent.md). Thread-safe.
class VerdictServer {
 public:
  // `clock` must outlive it. Error kUnavailable: the socket cannot be made; kInvalid: its path is
  // too long.
  static Result<std::unique_ptr<VerdictServer>> Start(VerdictServerOptions options,
                                                      const Clock& clock, VerdictHooks hooks);
  // Ends all connections and removes the socket.
  ~VerdictServer();
  VerdictServer(const VerdictServer&) = delete;
  VerdictServer& operator=(const VerdictServer&) = delete;

 private:
  class Impl;
  explicit VerdictServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
