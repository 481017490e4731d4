#include "operator/controllers/step.h"

#include <utility>

namespace bimetal::op {

Step::Step(const Clock& clock, Parts parts, Observer observe, Stopwatch stopwatch)
    : clock_(clock),
      parts_(parts),
      observe_(std::move(observe)),
      stopwatch_(std::move(stopwatch)) {}

void Step::Run() {
  parts_.nodes.Reconcile();
  parts_.jobs.Reconcile();
  parts_.services.Reconcile();
  parts_.gated_pods.Reconcile();
  if (!wanted_ || pace_.Wait(clock_.Monotonic()) > Millis{0}) return;
  wanted_ = false;
  const std::int64_t begin = stopwatch_();
  const std::string_view result = parts_.cycle.Run();
  const std::int64_t micros = stopwatch_() - begin;
  pace_.Spent(clock_.Monotonic(), micros);
  if (observe_) observe_(result, micros);
}

std::optional<TimePoint> Step::NextWake() const {
  std::optional<TimePoint> next;
  const auto take = [&next](std::optional<TimePoint> wake) {
    if (wake && (!next || *wake < *next)) next = wake;
  };
  take(parts_.nodes.NextWake());
  take(parts_.jobs.NextWake());
  take(parts_.services.NextWake());
  take(parts_.gated_pods.NextWake());
  if (wanted_) take(clock_.Now() + pace_.Wait(clock_.Monotonic()));
  return next;
}

}  // namespace bimetal::op
