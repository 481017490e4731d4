#include "workloads/program/stop.h"

#include <signal.h>

#include <algorithm>
#include <thread>

namespace bimetal::workloads {
namespace {

volatile sig_atomic_t stop_requested = 0;

void OnStop(int) { stop_requested = 1; }

}  // namespace

void WatchStopSignals() {
  struct sigaction action {};
  action.sa_handler = OnStop;  // without SA_RESTART: waits return early
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

bool StopRequested() { return stop_requested != 0; }

bool SleepUnlessStopped(std::chrono::milliseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (!StopRequested()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::milliseconds(0)) return true;
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(100)));
  }
  return false;
}

}  // namespace bimetal::workloads
