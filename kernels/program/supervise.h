#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/run/run.h"

namespace bimetal::kernels {

// Runs the validation in a process of its own (this program with `arguments` and kWorkerFlag) and
// passes on what it says. A worker that does not end in time is killed, one that dies is noticed;
// what it still owed becomes Inconclusive, with the check in which each device was. Returns within
// timeout + grace + a few seconds, whatever the worker does; leaves no process behind that can be
// killed.
RunSummary Supervise(const RunOptions& options, const std::vector<std::string>& arguments,
                     const std::function<void(const std::string&)>& on_line);

// Of a worker: the kernel kills this process when its supervisor ends.
void DieWithParent();

}  // namespace bimetal::kernels
