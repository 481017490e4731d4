#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "core/base/time.h"

namespace bimetal::op {

// The one thread that owns all state of the operator. Everything else reaches that state by posting
// a task here: what the watches saw, what agents reported, how writes ended. Post is thread-safe;
// the rest is for the thread that calls Run.
class Loop {
 public:
  using Task = std::function<void()>;

  // `capacity`: tasks that may wait before Post blocks, which pushes back on the watches.
  Loop(const Clock& clock, std::size_t capacity);

  // Waits while the queue is full. Returns false, and drops the task, once Stop was called.
  bool Post(Task task);

  // Loop thread only. Runs `task` once `when` (Clock::Monotonic) has come.
  void At(Millis when, Task task);

  // Loop thread only. Runs `step` once after the tasks that wait now; many calls make one run.
  void SetStep(Task step) { step_ = std::move(step); }
  void RequestStep() { step_wanted_ = true; }

  // Runs tasks, timers and steps until Stop.
  void Run();
  void Stop();

  // For metrics, thread-safe: tasks waiting, and how long the last task that began had waited.
  std::size_t Depth() const;
  Millis Lag() const;

 private:
  struct Waiting {
    Task task;
    Millis posted;
  };

  const Clock& clock_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, room_;
  std::deque<Waiting> queue_;  // guarded by mutex_
  bool stopped_ = false;       // guarded by mutex_
  Millis lag_;                 // guarded by mutex_
  std::multimap<std::int64_t, Task> timers_;
  Task step_;
  bool step_wanted_ = false;
};

}  // namespace bimetal::op
