#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"

// Time slices: who runs where in the next round, when jobs may be stopped and continued. Rates
// differ by job and class, so the choice of jobs and the choice of classes are one decision.
namespace bimetal::core::queue::order {

// What a round is good for.
enum class Objective {
  kMeanFinish,  // finish as many as possible as soon as possible; see ExpectedWork
  kMakespan,    // be done with all of them as soon as possible
  kLowestCost,  // spend least a unit of work
};

// A class of devices of which any will do (a pool).
struct RoundClass {
  std::int64_t devices = 0;
  std::int64_t price = 0;  // of a device and hour, any unit; read by kLowestCost alone
};

struct RoundJob {
  Uid id;
  std::int64_t devices = 1;
  std::vector<std::int64_t> rate;  // by class, thousandths of the reference; 0: cannot run there
  Millis work;                     // what it is expected to need yet, at rate 1000
  Millis attained;                 // work that it has done, at rate 1000
  Millis waited;                   // time since it came in which it did not run
  std::int64_t weight = 1;         // worth of the job against others, 1 .. 1000
  std::optional<std::size_t> running;  // the class on which it runs now
};

struct RoundPolicy {
  Objective objective = Objective::kMeanFinish;
  Millis length = Seconds(360);  // of a round
  Millis restart;                // lost by a job that starts or moves
};

// The class on which each job runs in the next round, by the index of the job; nullopt: it waits.
// No class is filled beyond its devices, no job runs where its rate is 0, and no device stays free
// that a waiting job could use. Equal jobs are told apart by id, so the order of `jobs` does not
// matter (but ids must differ). Pure.
//
// kMeanFinish gives every device to the job that brings most finished jobs a second for it: a
// job's worth on a class is its rate there over the work it needs yet, and grows as it waits, so
// that none starves. Classes have prices, found by raising those that are asked for too much; a job
// goes where its worth less the price of its devices is greatest. So a job moves off a fast class
// when another gains more there.
std::vector<std::optional<std::size_t>> AssignRound(const std::vector<RoundJob>& jobs,
                                                    const std::vector<RoundClass>& classes,
                                                    const RoundPolicy& policy);

// What is known of a job's work.
struct Knowledge {
  Millis attained;                  // work done so far
  std::optional<Millis> remaining;  // known exactly
  std::optional<Millis> predicted;  // of the whole job, by history
};

// Work that a job is expected to need yet: known, else by prediction, else as much as it has done
// already. Run times of training jobs have heavy tails (about log-uniform), so what has run long
// will run long: least attained service first. At least half a minute.
Millis ExpectedWork(const Knowledge& job);

}  // namespace bimetal::core::queue::order
