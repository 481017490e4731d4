#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "api/kubernetes.pb.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/client/client.h"

namespace bimetal::kube {

struct LeaderConfig {
  std::string ns;
  std::string name;
  // Who we are, unique among the candidates; the pod's name, so that a restarted container takes
  // its own lease back at once.
  std::string identity;
  // Others may take over when the lease has not changed for this long, by their own clock.
  Millis lease_duration = Seconds(8);
  // We step down when the last renewal that succeeded was begun this long ago.
  Millis renew_deadline = Seconds(6);
  // Between renewals, and between looks at another's lease.
  Millis renew_interval = Seconds(2);
};

// What a candidate remembers between steps. Times are of the local monotonic clock: the clocks of
// other candidates are never compared with ours.
struct LeaderState {
  bool leading = false;
  // Leading: begin of the last renewal that succeeded.
  Millis renewed_at;
  // The lease as last seen and since when it has looked so.
  std::string observed_version;
  Millis observed_at;
  // Who holds the lease as far as we know; "" for nobody.
  std::string holder;
};

enum class LeaderAction {
  kWait,     // nothing to write
  kCreate,   // there is no lease: create it with us as holder
  kAcquire,  // take the lease over
  kRenew,    // it is ours: renew it
};

struct LeaderStep {
  LeaderState state;
  LeaderAction action = LeaderAction::kWait;
};

// Decides after a look at the lease. `lease`: what was read, an empty optional where there is none
// (404), an Error where the look failed. Pure.
LeaderStep Step(LeaderState state, const Result<std::optional<api::Lease>>& lease, Millis now,
                const LeaderConfig& config);

// Takes in how the write that Step asked for ended; `begun` is when it was sent. Pure.
LeaderState AfterWrite(LeaderState state, const Result<api::Lease>& written, Millis begun,
                       Millis now, const LeaderConfig& config);

struct LeaderCallbacks {
  // On the elector's thread; must not block for long, it renews the lease too.
  std::function<void()> on_started;
  std::function<void()> on_stopped;
};

// Leader election by a Lease of coordination.k8s.io. Start, Stop and the destructor: one thread;
// getters: thread-safe.
class LeaderElector {
 public:
  // `clock` must outlive the elector; the system's where null.
  LeaderElector(const std::shared_ptr<Client>& client, LeaderConfig config,
                LeaderCallbacks callbacks, const Clock* clock = nullptr);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void Start();
  // Gives the lease back where we hold it (on_stopped is called first), then ends the thread.
  void Stop();

  // True while the lease is surely ours; turns false by time alone, even if the thread hangs.
  bool IsLeader() const;
  // The last holder seen, "" for nobody or unknown.
  std::string holder() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::jthread thread_;
};

}  // namespace bimetal::kube
