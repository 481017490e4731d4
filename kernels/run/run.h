#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/checks/check.h"
#include "kernels/device/device.h"

namespace bimetal::kernels {

// What a validation run is asked to do. Immutable once the run begins.
struct RunOptions {
  std::string run_id;
  std::string fingerprint;             // passed through: what the verdicts are bound to
  std::optional<BackendKind> backend;  // none: chosen by machine, vendor, or what answers
  std::string vendor;                  // "nvidia", "amd", or empty: any
  std::string machine;                 // description for the host back end; empty: none
  std::vector<std::string> devices;    // ids or PCI addresses; empty: all
  std::vector<const Check*> checks;    // in order
  int level = 1;
  std::uint64_t seed = 1;
  std::uint64_t memory_bytes = 0;  // 0: each device's default
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds grace{2'000};       // for vendor calls that do not know our deadline
  std::chrono::milliseconds stress{60'000};     // of sustained load, on devices that are measured
  std::optional<std::uint64_t> expect_devices;  // check inventory fails on any other number
  // Told of what a supervisor needs beside the lines (see Board::Relay). Empty: nobody listens.
  std::function<void(const std::string&)> on_event;
};

// What a run came to.
struct RunSummary {
  VerdictKind verdict = VerdictKind::kInconclusive;  // Pass, Fail or Inconclusive
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t inconclusive = 0;
  std::vector<std::string> lines;  // every JSON line, in the order of `on_line`
  // A vendor call never came back and still holds a thread: leave the process with std::_Exit.
  bool abandoned = false;
};

// Runs the checks on every selected device, devices in parallel, then the checks of the whole node.
// Each JSON line (one `run`, then `verdict`s as they come, then one `done`) goes to `on_line`, one
// call at a time. Every selected device gets exactly one verdict a check that applies to it,
// whatever happens; where no device can be had, each check (and requested id) gets one Inconclusive
// verdict with the reason. A device that hangs holds no other up; its verdicts name the call that
// never returned. Returns within timeout + grace.
RunSummary RunValidation(const RunOptions& options,
                         const std::function<void(const std::string&)>& on_line);

// The program's version, "0.1.0".
std::string_view ProgramVersion();

}  // namespace bimetal::kernels
