#include "agent/report/report_client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "agent/report/channel.h"
#include "core/base/log.h"

namespace bimetal::agent {
namespace {

using Steady = std::chrono::steady_clock;

std::chrono::milliseconds Span(Millis d) { return std::chrono::milliseconds(d.v); }

// What one call gave.
struct Answer {
  grpc::Status status;
  std::string leader;  // that a standby named; empty: none
  api::ReportNodeReply reply;
};

std::string CodeName(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
      return "Unavailable";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "DeadlineExceeded";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "Unauthenticated";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "PermissionDenied";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "InvalidArgument";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "ResourceExhausted";
    default:
      return "code " + std::to_string(static_cast<int>(code));
  }
}

}  // namespace

class ReportClient::Impl {
 public:
  Impl(ReportOptions options, const Clock& clock, OnReply on_reply)
      : options_(std::move(options)),
        clock_(clock),
        on_reply_(std::move(on_reply)),
        channel_(options_.tls_server_name.empty() ? HostOf(options_.address)
                                                  : options_.tls_server_name),
        jitter_(std::random_device{}()),
        backoff_(options_.first_backoff),
        thread_([this] { Run(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (call_ != nullptr) call_->TryCancel();
    }
    wake_.notify_all();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Submit(api::ReportNodeRequest request, bool at_once) {
    const std::lock_guard lock(mutex_);
    newest_ = std::move(request);
    have_report_ = true;
    changed_ = changed_ || at_once;
    wake_.notify_all();
  }

  ReportStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void Run() {
    while (auto request = NextReport()) {
      Answer answer = Send(*request);
      if (answer.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT &&
          request->runs_size() > 0) {
        // One run that the operator cannot take must not silence the node. It is tried again when
        // the next report is due.
        TakeFailure(answer.status, /*retry=*/false);
        request->clear_runs();
        answer = Send(*request);
      }
      if (answer.status.ok()) {
        TakeReply(std::move(answer.reply));
      } else {
        TakeFailure(answer.status, /*retry=*/true);
      }
    }
  }

  Answer Send(api::ReportNodeRequest& request) {
    seq_ = std::max(seq_ + 1, clock_.Now().ms);
    request.set_seq(seq_);
    return Deliver(request);
  }

  // Waits until a report is due; nothing once we stop.
  std::optional<api::ReportNodeRequest> NextReport() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      const auto now = Steady::now();
      // After a failure the next attempt waits for the backoff, whatever changes meanwhile.
      const auto due = changed_ ? not_before_ : std::max(not_before_, periodic_);
      if (have_report_ && now >= due) {
        changed_ = false;
        return newest_;
      }
      if (have_report_) {
        wake_.wait_until(lock, due);
      } else {
        wake_.wait(lock);
      }
    }
    return std::nullopt;
  }

  // One report: to the leader where we know one, to the Service where that fails, and on to the
  // leader that a standby behind the Service names.
  Answer Deliver(const api::ReportNodeRequest& request) {
    const auto ca = ReadSmallFile(options_.ca_file);
    if (!ca) return Answer{{grpc::StatusCode::FAILED_PRECONDITION, ca.error().message}, {}, {}};
    if (!leader_.empty()) {
      Answer answer = Call(leader_, *ca, request);
      if (answer.status.ok()) return answer;
      leader_ = answer.leader == leader_ ? std::string() : answer.leader;
      if (!leader_.empty()) return FollowLeader(*ca, request);
    }
    Answer answer = Call(options_.address, *ca, request);
    if (answer.status.ok() || answer.leader.empty()) return answer;
    leader_ = answer.leader;
    return FollowLeader(*ca, request);
  }

  Answer FollowLeader(const std::string& ca, const api::ReportNodeRequest& request) {
    Answer answer = Call(leader_, ca, request);
    if (!answer.status.ok()) leader_.clear();
    return answer;
  }

  Answer Call(const std::string& target, const std::string& ca,
              const api::ReportNodeRequest& request) {
    Answer answer;
    const auto token = ReadToken(options_.token_file);
    if (!token) {
      answer.status = {grpc::StatusCode::FAILED_PRECONDITION, token.error().message};
      return answer;
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + Span(options_.call_deadline));
    context.AddMetadata("authorization", "Bearer " + *token);
    auto& service = channel_.To(target, ca);
    if (!BeginCall(context, target)) {
      answer.status = {grpc::StatusCode::CANCELLED, "the agent stops"};
      return answer;
    }
    answer.status = service.ReportNode(&context, request, &answer.reply);
    EndCall();
    if (answer.status.ok()) return answer;
    if (answer.status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      const auto& trailers = context.GetServerTrailingMetadata();
      const auto leader = trailers.find("bimetal-leader");
      if (leader != trailers.end()) {
        const std::string named(leader->second.data(), leader->second.size());
        if (IsHostPort(named)) answer.leader = named;
      }
    }
    channel_.Drop();
    return answer;
  }

  bool BeginCall(grpc::ClientContext& context, const std::string& target) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    call_ = &context;
    stats_.target = target;
    return true;
  }

  void EndCall() {
    const std::lock_guard lock(mutex_);
    call_ = nullptr;
  }

  void TakeReply(api::ReportNodeReply reply) {
    bool behind = false;
    {
      const std::lock_guard lock(mutex_);
      if (!stats_.last_error.empty() || !stats_.accepted) {
        Log(LogLevel::kInfo, "operator takes reports", {{"target", stats_.target}});
      }
      backoff_ = options_.first_backoff;
      not_before_ = Steady::now();
      const bool runs_wait = newest_.runs_size() > 0;
      periodic_ =
          not_before_ + Span(runs_wait ? std::min(options_.interval, options_.interval_with_runs)
                                       : options_.interval);
      stats_.last_error.clear();
      stats_.accepted = clock_.Monotonic();
      // An earlier process of ours was ahead: the wall clock went back since. Overtake it.
      behind = reply.accepted_seq() > seq_ &&
               reply.accepted_seq() < std::numeric_limits<std::int64_t>::max() / 2;
      if (behind) {
        seq_ = reply.accepted_seq();
        changed_ = true;
      }
    }
    on_reply_(std::move(reply));
  }

  void TakeFailure(const grpc::Status& status, bool retry) {
    const std::string error = CodeName(status.error_code()) + ": " + status.error_message();
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (stats_.last_error != error) {
      Log(LogLevel::kWarning, "report not accepted",
          {{"target", stats_.target}, {"reason", error}, {"failures", stats_.failures + 1}});
    }
    ++stats_.failures;
    stats_.last_error = error;
    if (!retry) return;
    changed_ = true;
    // Half of the backoff is fixed, half is chance, so that a fleet does not come back in step.
    std::uniform_int_distribution<std::int64_t> chance(backoff_.v / 2, backoff_.v);
    not_before_ = Steady::now() + std::chrono::milliseconds(chance(jitter_));
    backoff_ = std::min(Millis{backoff_.v * 2}, options_.max_backoff);
  }

  const ReportOptions options_;
  const Clock& clock_;
  const OnReply on_reply_;

  // Of thread_ alone.
  OperatorChannel channel_;
  std::string leader_;
  std::int64_t seq_ = 0;
  std::mt19937_64 jitter_;
  Millis backoff_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  api::ReportNodeRequest newest_;  // all below guarded by mutex_
  bool have_report_ = false;
  bool changed_ = false;
  bool stopping_ = false;
  Steady::time_point not_before_;
  Steady::time_point periodic_;
  grpc::ClientContext* call_ = nullptr;
  ReportStats stats_;
  std::thread thread_;  // last, so that it starts when all else is there
};

ReportClient::ReportClient(ReportOptions options, const Clock& clock, OnReply on_reply)
    : impl_(std::make_unique<Impl>(std::move(options), clock, std::move(on_reply))) {}
ReportClient::~ReportClient() = default;

void ReportClient::Submit(api::ReportNodeRequest request, bool at_once) {
  impl_->Submit(std::move(request), at_once);
}

ReportStats ReportClient::stats() const { return impl_->stats(); }

}  // namespace bimetal::agent
