#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/cost/cost.h"
#include "core/model/job.h"

// Which of its variants a job takes (spec.selection).
namespace bimetal::core::queue::order {

// One variant of a job beside the others.
struct Candidate {
  std::int64_t devices = 1;  // whole devices of the gang
  // Of the whole gang, thousandths, on one scale with the other candidates of the job: measured on
  // this cluster, else as the job says. nullopt: nobody knows.
  std::optional<std::int64_t> throughput_milli;
  // Billionths of the PriceBook's currency for one device and hour. nullopt: no price.
  std::optional<std::int64_t> nano_per_hour;
  std::optional<std::int64_t> max_nano_per_hour;  // the most that the job pays; nullopt: any
  bool possible = true;  // it could start on this fleet some day, were nobody else there
};

// The candidates (by index) that may start now, in the order in which to try them; the first that
// has a place starts. Who is not among them waits. A cycle that has a choice calls this once a job,
// with a candidate for each variant, in place of the order of the list:
//   InOrder: the order of the list (fallbackAfter is the caller's matter: it knows when).
//   EarliestStart: by throughput; before a slower one starts, ask WorthWaiting.
//   LowestCost: those of the least cost for the work (price * devices / throughput) alone, so that
//     the job waits for them rather than pay more.
//   BestValue: by the same cost, all of them: the best that has a place now.
// Dearer than maxPricePerHour, and no price where one is asked for: not among them, whatever the
// policy. Where one throughput is unknown, all count as equal: nothing is guessed. Candidates
// without a price come after those with one; LowestCost takes them where there is no other. Ties
// keep the order of the list. Pure.
std::vector<std::size_t> StartOrder(SelectionPolicy policy,
                                    const std::vector<Candidate>& candidates);

// True where a job that could start at `now` as `here` would finish sooner if it waited until
// `start` to run as `there`. `work` is its run time at throughput 1000; where it or a throughput is
// unknown, waiting is not worth it. Pure.
bool WorthWaiting(const Candidate& here, const Candidate& there, TimePoint now, TimePoint start,
                  std::optional<Millis> work);

// What a device of a model costs an hour now: hardware, energy and labour.
struct DevicePrice {
  Vendor vendor = Vendor::kNvidia;
  std::string model;
  std::int64_t nano_per_hour = 0;
  auto operator<=>(const DevicePrice&) const = default;
};

// The prices of `book` that hold at `now` in `pool` (every pool where it is empty), by vendor and
// model; models without a price at that time are left out. Sums stop at the greatest number. Pure.
std::vector<DevicePrice> PricesAt(const cost::PriceBook& book, TimePoint now,
                                  const PoolName& pool = {});

// The variants of `job` (indexes into Job::variants) that may start now, in the order in which to
// try them: StartOrder over candidates made of its hints and of the lowest of `prices` among the
// models that each variant takes. `possible[i]`: variant i could start some day; empty: all. Pure.
std::vector<std::size_t> VariantOrder(const Job& job, const std::vector<DevicePrice>& prices,
                                      const std::vector<bool>& possible);

// Run time of `work` at `throughput_milli`; nullopt where that is not positive.
std::optional<Millis> RunTime(Millis work, std::int64_t throughput_milli);

}  // namespace bimetal::core::queue::order
