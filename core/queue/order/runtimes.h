#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/time.h"

namespace bimetal::core::queue::order {

// From how much a prediction was made, best first.
enum class Basis { kQueueAndDevices, kQueue, kDevices, kAny };

struct Prediction {
  Millis work;  // run time on a class of rate 1000
  Basis basis = Basis::kAny;
};

// How long jobs run, learnt from those that have finished: the mean of the last two of the same
// queue and number of devices (Tsafrir, Etsion and Feitelson 2007: better than what users
// estimate); where there is none of them, of the same queue, of as many devices, of any. Times are
// work: what a run would have taken on a class of rate 1000, so that both vendors teach one
// history. Deterministic: depends on the order of Finished alone. Loop thread only.
class RunTimes {
 public:
  // A job ran to its end; negative work counts as 0.
  void Finished(const std::string& queue, std::int64_t devices, Millis work);
  // nullopt: nothing has finished yet.
  std::optional<Prediction> Predict(const std::string& queue, std::int64_t devices) const;

 private:
  struct LastTwo {
    std::optional<Millis> last, before;
    void Add(Millis work);
    std::optional<Millis> Mean() const;
  };

  std::map<std::pair<std::string, std::int64_t>, LastTwo> by_queue_and_devices_;
  std::map<std::string, LastTwo> by_queue_;
  std::map<std::int64_t, LastTwo> by_devices_;
  LastTwo any_;
};

// What a job that has run for `elapsed` still needs by `prediction`. One that has outlived its
// prediction is expected to run as long again as it has: run times have heavy tails.
Millis RemainingOf(Millis prediction, Millis elapsed);

}  // namespace bimetal::core::queue::order
