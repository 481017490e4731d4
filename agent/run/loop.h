#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "core/base/time.h"

namespace bimetal::agent {

// The queue of the one thread that owns the agent's state. Post and Stop are thread-safe; Run is
// for the owner.
class Loop {
 public:
  using Task = std::function<void()>;

  // `capacity`: tasks that may wait before Post blocks.
  explicit Loop(std::size_t capacity) : capacity_(capacity) {}

  // Waits while the queue is full. False, and the task is dropped, once Stop was called.
  bool Post(Task task);

  // Runs tasks, and `tick` about each `period`, until Stop.
  void Run(Millis period, const Task& tick);
  // Tasks that still wait are dropped.
  void Stop();

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable wake_, room_;
  std::deque<Task> queue_;  // guarded by mutex_
  bool stopped_ = false;    // guarded by mutex_
};

}  // namespace bimetal::agent
