#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/agent.pb.h"
#include "core/base/time.h"

namespace bimetal::agent {

struct ReportOptions {
  std::string address;          // the operator's Service, host:port
  std::string tls_server_name;  // empty: the host of `address`
  std::string ca_file;
  std::string token_file;
  Millis interval = Seconds(10);  // a report at least this often
  // While runs wait to be acknowledged: what the operator makes of them comes with a reply.
  Millis interval_with_runs = Seconds(1);
  Millis call_deadline = Seconds(5);
  Millis first_backoff{500};  // after one failure; doubles, with jitter, up to
  Millis max_backoff = Seconds(10);
};

// How reporting goes.
struct ReportStats {
  std::int64_t failures = 0;       // since the start
  std::optional<Millis> accepted;  // Clock::Monotonic of the last accepted report
  std::string last_error;          // empty: the last report was accepted
  std::string target;              // who was asked last
};

// Keeps the operator informed: sends the newest report at once when it changes, again when nobody
// changed it for an interval, and again after a failure. Follows a standby to the leader and comes
// back to the Service when the leader does not answer. CA and token are read from their files each
// time, so both may rotate. Thread-safe.
class ReportClient {
 public:
  // Called from the client's own thread, with each reply of the operator.
  using OnReply = std::function<void(api::ReportNodeReply)>;

  // `clock` must outlive it.
  ReportClient(ReportOptions options, const Clock& clock, OnReply on_reply);
  // Cancels a call in progress; takes well under a second.
  ~ReportClient();
  ReportClient(const ReportClient&) = delete;
  ReportClient& operator=(const ReportClient&) = delete;

  // The report to send from now on; its seq is put in here. Only the newest is kept. With `at_once`
  // it is sent now, else when the next one is due.
  void Submit(api::ReportNodeRequest request, bool at_once);

  ReportStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
