#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/devices/source.h"
#include "core/base/time.h"

namespace bimetal::agent {

// How a child process ended.
struct ProbeOutcome {
  enum class End {
    kExited,      // by itself; see exit_code
    kSignalled,   // crashed; see signal
    kTimedOut,    // killed by us: silent for too long, or over the whole deadline
    kTooMuch,     // killed by us: wrote more than 8 MiB
    kNotStarted,  // see why
  };
  End end = End::kNotStarted;
  int exit_code = 0;
  int signal = 0;
  int stuck_child = 0;  // its process id where it sits in the kernel and does not end
  std::string why;      // one line for people
  std::string output;   // what it wrote, also where it was killed
};

// Runs `argv` (argv[0]: path of a program) and collects what it writes to file descriptor 3; its
// standard streams go to /dev/null. It is killed after `silence` without a byte and after `total`
// at the latest. Thread-safe; blocks at most `total` and half a second.
ProbeOutcome RunProbe(const std::vector<std::string>& argv, Millis silence, Millis total);

// How vendors are read in a process of their own.
struct ProbeOptions {
  // Program and first arguments; empty: /proc/self/exe, whose main must call MaybeRunProbe first.
  std::vector<std::string> command;
  Millis silence = Seconds(3);  // one step of a reader may take this long
  Millis total = Seconds(20);   // all attempts for one vendor together
  Millis retry = Minutes(2);    // a step that hung or crashed is tried again after this
  std::string nvml_path;        // explicit path of the NVIDIA library; empty: search under the root
  bool system_library = false;  // asks the loader by name although the root is not "/"
};

// What earlier probes taught: steps that hung or crashed are not tried again for a while, and while
// a child sits unkillable in a driver no further one calls that vendor's library. One owner thread.
struct ProbeMemory {
  struct BadStep {
    Finding finding;
    Millis retry_at;  // monotonic
  };
  std::map<Vendor, std::map<std::string, BadStep>> bad_steps;
  std::map<Vendor, int> stuck_child;  // process id
};

// The step that stands for every call into vendor library or driver.
inline constexpr char kVendorStep[] = "vendor";

// Reads one vendor under `root` in a probe process. A step that hangs or crashes becomes a finding
// (VendorLibraryHung, VendorLibraryCrashed) and is left out of the next attempt, so that one sick
// device does not hide the others; after three, all vendor calls are left out. Blocks at most
// options.total and a second.
SourceReport ReadInProbe(Vendor vendor, const std::string& root, const ProbeOptions& options,
                         ProbeMemory& memory);

// The child's side: where `argv` asks for a probe ("--probe amd|nvidia ..."), runs it and returns
// the exit code; else nothing. Call it first in main, before any thread is started.
std::optional<int> MaybeRunProbe(int argc, const char* const* argv);

}  // namespace bimetal::agent
