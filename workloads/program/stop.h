#pragma once

#include <chrono>

namespace bimetal::workloads {

// SIGTERM and SIGINT ask the process to stop; whoever waits looks here often. Call
// WatchStopSignals() once, before any thread is started.
void WatchStopSignals();
bool StopRequested();

// Sleeps at most `duration`; returns early and false once a stop is requested.
bool SleepUnlessStopped(std::chrono::milliseconds duration);

// Exit status of a process that stopped because it was asked to, as a shell reports SIGTERM.
inline constexpr int kExitStopped = 143;

}  // namespace bimetal::workloads
