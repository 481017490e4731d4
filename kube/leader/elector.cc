#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/log.h"
#include "kube/codec/json.h"
#include "kube/leader/leader.h"

namespace bimetal::kube {

// Look, decide, write, wait. Runs on the elector's thread.
class LeaderElector::Loop {
 public:
  Loop(const std::shared_ptr<Client>& client, LeaderConfig config, LeaderCallbacks callbacks,
       const Clock* clock)
      // Two looks that hang must fit into the renew deadline.
      : client_(client->WithDeadline(Millis{config.renew_deadline.v / 4})),
        config_(std::move(config)),
        callbacks_(std::move(callbacks)),
        clock_(clock != nullptr ? *clock : system_clock_) {}

  void Run(const StopToken& stop) {
    while (!stop.stop_requested()) {
      const bool in_order = Round();
      Publish();
      Rest(in_order ? config_.renew_interval : Millis{config_.renew_interval.v / 4}, stop);
    }
    if (std::exchange(was_leading_, false)) {
      leading_until_ = 0;
      if (callbacks_.on_stopped) callbacks_.on_stopped();
      Release();
    }
  }

  bool IsLeader() const { return clock_.Monotonic().v < leading_until_; }

  std::string holder() const {
    const std::lock_guard lock(mutex_);
    return holder_;
  }

 private:
  // False where the API server could not be asked or told.
  bool Round() {
    const Result<std::optional<api::Lease>> lease = Read();
    if (!lease) {
      Log(LogLevel::kWarning, "lease cannot be read",
          {{"lease", config_.ns + "/" + config_.name}, {"error", lease.error().message}});
    }
    LeaderStep step = Step(std::move(state_), lease, clock_.Monotonic(), config_);
    state_ = std::move(step.state);
    if (step.action == LeaderAction::kWait) return lease.has_value();
    const Millis begun = clock_.Monotonic();
    const Result<api::Lease> written = Write(step.action, *lease ? &**lease : nullptr);
    state_ = AfterWrite(std::move(state_), written, begun, clock_.Monotonic(), config_);
    if (written || written.error().code == ErrorCode::kConflict ||
        written.error().code == ErrorCode::kAlreadyExists) {
      return true;
    }
    Log(LogLevel::kWarning, "lease cannot be written",
        {{"lease", config_.ns + "/" + config_.name}, {"error", written.error().message}});
    return false;
  }

  Result<std::optional<api::Lease>> Read() {
    Result<api::Lease> lease = client_.Get<api::Lease>(config_.ns, config_.name);
    if (lease) return std::optional<api::Lease>(std::move(lease).value());
    if (lease.error().code == ErrorCode::kNotFound) return std::optional<api::Lease>();
    return tl::unexpected<Error>(std::move(lease).error());
  }

  Result<api::Lease> Write(LeaderAction action, const api::Lease* old) {
    const std::string now = FormatMicroTime(clock_.Now());
    if (action == LeaderAction::kCreate || old == nullptr) {
      api::Lease lease;
      lease.mutable_metadata()->set_namespace_(config_.ns);
      lease.mutable_metadata()->set_name(config_.name);
      lease.mutable_spec()->set_holder_identity(config_.identity);
      lease.mutable_spec()->set_lease_duration_seconds(LeaseSeconds());
      lease.mutable_spec()->set_acquire_time(now);
      lease.mutable_spec()->set_renew_time(now);
      lease.mutable_spec()->set_lease_transitions(0);
      return client_.Create(lease);
    }
    std::string spec = R"("holderIdentity":)" + JsonString(config_.identity) +
                       R"(,"leaseDurationSeconds":)" + std::to_string(LeaseSeconds()) +
                       R"(,"renewTime":")" + now + '"';
    if (action == LeaderAction::kAcquire) {
      spec += R"(,"acquireTime":")" + now + R"(","leaseTransitions":)" +
              std::to_string(old->spec().lease_transitions() + 1);
    }
    return Patch(old->metadata().resource_version(), spec);
  }

  // A patch leaves fields that we do not know; the resource version makes it lose to any other
  // writer.
  Result<api::Lease> Patch(const std::string& version, const std::string& spec) {
    const std::string patch =
        R"({"metadata":{"resourceVersion":)" + JsonString(version) + R"(},"spec":{)" + spec + "}}";
    return client_.Patch<api::Lease>(config_.ns, config_.name, patch, PatchType::kMerge);
  }

  void Release() {
    const Result<api::Lease> written =
        Patch(state_.observed_version, R"("holderIdentity":null,"leaseDurationSeconds":1)");
    if (written) return;
    Log(LogLevel::kInfo, "lease not given back, it runs out by itself",
        {{"lease", config_.ns + "/" + config_.name}, {"error", written.error().message}});
  }

  void Publish() {
    leading_until_ = state_.leading ? (state_.renewed_at + config_.renew_deadline).v : 0;
    {
      const std::lock_guard lock(mutex_);
      holder_ = state_.holder;
    }
    if (state_.leading == was_leading_) return;
    was_leading_ = state_.leading;
    Log(LogLevel::kInfo, state_.leading ? "leadership gained" : "leadership lost",
        {{"lease", config_.ns + "/" + config_.name},
         {"identity", config_.identity},
         {"holder", state_.holder}});
    if (state_.leading && callbacks_.on_started) callbacks_.on_started();
    if (!state_.leading && callbacks_.on_stopped) callbacks_.on_stopped();
  }

  void Rest(Millis time, const StopToken& stop) {
    std::unique_lock lock(rest_mutex_);
    never_.wait_for(lock, stop, std::chrono::milliseconds(time.v), [] { return false; });
  }

  std::int32_t LeaseSeconds() const {
    return static_cast<std::int32_t>((config_.lease_duration.v + 999) / 1000);
  }

  Client client_;
  const LeaderConfig config_;
  const LeaderCallbacks callbacks_;
  const SystemClock system_clock_;
  const Clock& clock_;
  LeaderState state_;
  bool was_leading_ = false;
  std::atomic<std::int64_t> leading_until_{0};
  mutable std::mutex mutex_;
  std::string holder_;
  std::mutex rest_mutex_;
  std::condition_variable_any never_;
};

LeaderElector::LeaderElector(const std::shared_ptr<Client>& client, LeaderConfig config,
                             LeaderCallbacks callbacks, const Clock* clock)
    : loop_(std::make_unique<Loop>(client, std::move(config), std::move(callbacks), clock)) {}

LeaderElector::~LeaderElector() { Stop(); }

void LeaderElector::Start() {
  BIMETAL_CHECK(!thread_.joinable());
  thread_ = std::jthread([this](const StopToken& stop) { loop_->Run(stop); });
}

void LeaderElector::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool LeaderElector::IsLeader() const { return loop_->IsLeader(); }
std::string LeaderElector::holder() const { return loop_->holder(); }

}  // namespace bimetal::kube
