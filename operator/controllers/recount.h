#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/time.h"
#include "operator/controllers/cycle.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

// Device capacity, in thousandths of a device, by which the books of `ours` and of `theirs` differ,
// summed over nodes and vendors. Pure.
std::int64_t BooksDifference(const std::vector<core::Pod>& ours,
                             const std::vector<core::Pod>& theirs);

// Recounts the books each minute from a fresh list of all pods and says by how much ours differ
// (design I2: it stays 0). A difference counts only if a second look a few seconds later shows one
// too, because a list and a watch are never of quite the same moment. Loop thread only.
class Recount {
 public:
  Recount(const Clock& clock, Loop& loop, Store& store, const SchedulingCycle& cycle,
          WriteSink& lists);

  // Call about once a second.
  void Tick();
  // Of the last complete recount; 0 before the first.
  std::int64_t difference_milli() const { return difference_milli_; }

 private:
  void Look(bool again);
  void Compare(const std::vector<api::Pod>& pods, bool again);

  const Clock& clock_;
  Loop& loop_;
  Store& store_;
  const SchedulingCycle& cycle_;
  WriteSink& lists_;
  Millis due_;
  bool in_flight_ = false;
  std::int64_t difference_milli_ = 0;
};

}  // namespace bimetal::op
