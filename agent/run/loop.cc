#include "agent/run/loop.h"

#include <chrono>
#include <utility>

namespace bimetal::agent {

bool Loop::Post(Task task) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stopped_ || queue_.size() < capacity_; });
  if (stopped_) return false;
  queue_.push_back(std::move(task));
  wake_.notify_one();
  return true;
}

void Loop::Run(Millis period, const Task& tick) {
  using Steady = std::chrono::steady_clock;
  const std::chrono::milliseconds span(period.v);
  auto next_tick = Steady::now() + span;
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_until(lock, next_tick, [&] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      if (!queue_.empty()) {
        task = std::move(queue_.front());
        queue_.pop_front();
        room_.notify_one();
      }
    }
    if (task) task();
    if (Steady::now() < next_tick) continue;
    tick();
    next_tick = Steady::now() + span;
  }
}

void Loop::Stop() {
  std::deque<Task> dropped;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  dropped.swap(queue_);
  wake_.notify_all();
  room_.notify_all();
}

}  // namespace bimetal::agent
