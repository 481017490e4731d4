#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "operator/controllers/cycle.h"
#include "operator/controllers/gated_pods.h"
#include "operator/controllers/jobs.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/pace.h"
#include "operator/controllers/services.h"
#include "operator/controllers/stopwatch.h"

namespace bimetal::op {

// What the loop does after events: every controller follows what was touched, and a scheduling
// cycle decides where somebody has asked for one and its pace allows it. Loop thread only.
class Step {
 public:
  struct Parts {
    NodeController& nodes;
    JobController& jobs;
    ServiceController& services;
    GatedPodController& gated_pods;
    SchedulingCycle& cycle;
  };
  // Told of every cycle: how it ended and how long it took. May be empty.
  using Observer = std::function<void(std::string_view result, std::int64_t micros)>;

  Step(const Clock& clock, Parts parts, Observer observe, Stopwatch stopwatch = SteadyMicros);

  // A scheduling cycle may find something new.
  void Want() { wanted_ = true; }
  void Run();
  // When Run is due without an event.
  std::optional<TimePoint> NextWake() const;

 private:
  const Clock& clock_;
  Parts parts_;
  Observer observe_;
  Stopwatch stopwatch_;
  Pace pace_{kCyclePace};
  bool wanted_ = false;
};

}  // namespace bimetal::op
