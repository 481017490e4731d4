#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "kube/client/client.h"
#include "kube/informer/informer.h"
#include "operator/config/config.h"
#include "operator/controllers/cycle_recorder.h"
#include "operator/controllers/fleet.h"
#include "operator/controllers/gated_pods.h"
#include "operator/controllers/jobs.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/recount.h"
#include "operator/controllers/services.h"
#include "operator/controllers/step.h"
#include "operator/loop/loop.h"
#include "operator/metrics/metrics.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

// The decision loop with everything around it that needs leadership: watches, store, controllers.
// Made when leadership has been won; ends with the process when it is lost.
class App {
 public:
  App(const Clock& clock, std::shared_ptr<kube::Client> client, const Config& config,
      Metrics& metrics);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Starts the watches; decisions begin once all have synced.
  void Start();
  // Runs the loop on the calling thread until Stop.
  void Run() { loop_.Run(); }
  void Stop();

  // Thread-safe. Hands a report to the loop and waits for the reply. Error kUnavailable before
  // decisions have begun, kDeadline where the loop does not answer within five seconds.
  Result<api::ReportNodeReply> Report(api::ReportNodeRequest request);

  // Thread-safe. All watches have synced, and decisions are made.
  bool Deciding() const { return deciding_; }
  // Thread-safe. An error where the loop has not come round for 30 s.
  Status Healthy() const;

 private:
  template <class T>
  void Watch(const std::string& plural, std::function<void(const T&, bool gone)> take,
             kube::InformerOptions options = {});
  void WatchAll();
  void Synced();
  void CreateDefaults();
  // Something changed that a scheduling cycle may find.
  void WantCycle();
  void RunStep();
  void ArmTimer();
  void Tick();

  const Clock& clock_;
  std::shared_ptr<kube::Client> client_;
  const Config& config_;
  Metrics& metrics_;
  Loop loop_;
  Store store_;
  Writer writer_;
  NodeController nodes_;
  JobController jobs_;
  ServiceController services_;
  GatedPodController gated_pods_;
  CycleRecorder recorder_;
  SchedulingCycle cycle_;
  Step step_;
  FleetController fleet_;
  Recount recount_;
  std::vector<std::shared_ptr<void>> informers_;
  std::vector<std::function<void()>> stop_informers_;
  int unsynced_ = 0;
  std::atomic<bool> deciding_{false};
  std::atomic<std::int64_t> last_tick_ms_{0};
  Millis next_refresh_;          // monotonic
  std::optional<Millis> timer_;  // armed for this monotonic time
};

}  // namespace bimetal::op
