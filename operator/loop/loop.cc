#include "operator/loop/loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bimetal::op {
namespace {

// Tasks handled before a step must run: bounds how stale a decision's inputs can be under a flood.
constexpr int kTasksPerStep = 2000;

}  // namespace

Loop::Loop(const Clock& clock, std::size_t capacity) : clock_(clock), capacity_(capacity) {}

bool Loop::Post(Task task) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stopped_ || queue_.size() < capacity_; });
  if (stopped_) return false;
  queue_.push_back(Waiting{std::move(task), clock_.Monotonic()});
  wake_.notify_one();
  return true;
}

void Loop::At(Millis when, Task task) { timers_.emplace(when.v, std::move(task)); }

void Loop::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
  room_.notify_all();
}

std::size_t Loop::Depth() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

Millis Loop::Lag() const {
  const std::lock_guard lock(mutex_);
  return lag_;
}

void Loop::Run() {
  int since_step = 0;
  while (true) {
    while (!timers_.empty() && timers_.begin()->first <= clock_.Monotonic().v) {
      const Task task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      task();
    }
    Task task;
    {
      std::unique_lock lock(mutex_);
      if (stopped_) return;
      if (queue_.empty() && !step_wanted_) {
        // At most a second at a time, so that a stepped clock cannot strand us.
        Millis wait = Seconds(1);
        if (!timers_.empty()) {
          wait = std::clamp(Millis{timers_.begin()->first} - clock_.Monotonic(), Millis{0}, wait);
        }
        wake_.wait_for(lock, std::chrono::milliseconds(wait.v),
                       [&] { return stopped_ || !queue_.empty(); });
        if (stopped_) return;
      }
      if (!queue_.empty() && !(step_wanted_ && since_step >= kTasksPerStep)) {
        lag_ = clock_.Monotonic() - queue_.front().posted;
        task = std::move(queue_.front().task);
        queue_.pop_front();
        room_.notify_one();
      }
    }
    if (task) {
      ++since_step;
      task();
    } else if (step_wanted_) {
      step_wanted_ = false;
      since_step = 0;
      step_();
    }
  }
}

}  // namespace bimetal::op
