#include "agent/run/enumerator.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace bimetal::agent {

struct Enumerator::Shared {
  Shared(Read r, Millis i, const Clock& c, OnInventory o)
      : read(std::move(r)), interval(i), clock(c), on_inventory(std::move(o)) {}

  void Run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      const Millis began = clock.Monotonic();
      look_began = began;
      lock.unlock();
      Inventory inventory = read();
      lock.lock();
      look_began.reset();
      if (stopping) break;
      const Millis took = clock.Monotonic() - began;
      reporting = true;
      lock.unlock();
      on_inventory(std::move(inventory), took);
      lock.lock();
      reporting = false;
      changed.notify_all();
      changed.wait_for(lock, std::chrono::milliseconds(interval.v), [&] { return stopping; });
    }
    ended = true;
    changed.notify_all();
  }

  const Read read;
  const Millis interval;
  const Clock& clock;
  const OnInventory on_inventory;

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;  // all below guarded by mutex
  bool reporting = false;
  bool ended = false;
  std::optional<Millis> look_began;
  std::thread thread;
};

Enumerator::Enumerator(Read read, Millis interval, const Clock& clock, OnInventory on_inventory)
    : shared_(std::make_shared<Shared>(std::move(read), interval, clock, std::move(on_inventory))) {
  shared_->thread = std::thread([shared = shared_] { shared->Run(); });
}

Enumerator::~Enumerator() { Stop(Millis{0}); }

std::optional<Millis> Enumerator::InProgress() const {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->look_began) return std::nullopt;
  return shared_->clock.Monotonic() - *shared_->look_began;
}

bool Enumerator::Stop(Millis patience) {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  // Whom we call must be done with us in any case.
  shared_->changed.wait(lock, [&] { return !shared_->reporting; });
  shared_->changed.wait_for(lock, std::chrono::milliseconds(patience.v),
                            [&] { return shared_->ended; });
  const bool ended = shared_->ended;
  lock.unlock();
  if (!shared_->thread.joinable()) return ended;
  if (ended) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();
  }
  return ended;
}

}  // namespace bimetal::agent
