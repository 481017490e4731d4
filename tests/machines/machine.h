#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/machines/description.h"
#include "tests/machines/render.h"

namespace bimetal::machines {

// A simulated machine in a folder: its description, state, and the root that a reader sees.
// One owner thread; a second process that changes the same folder at once loses changes.
class Machine {
 public:
  // Makes the machine in `root`, or makes it anew there. Errors: kInvalid for the description or a
  // node name that Kubernetes would not take; kInternal for the file system.
  static Result<Machine> Build(const std::string& description_yaml, const std::string& root,
                               const std::string& node, std::int64_t seed,
                               const std::string& nvml_library);

  // Opens a machine that Build made. Errors: kNotFound, kData.
  static Result<Machine> Open(const std::string& root);

  // Puts a fault in, beside what is there; a reader sees it at its next read. Errors: kInvalid.
  Status Inject(Fault fault);
  // Takes faults away: those of `device` and of `kind` where given. Returns how many.
  Result<std::size_t> Clear(std::optional<int> device, std::optional<Fault::Kind> kind);
  // A new boot id; the kernel log begins anew, so Xids go. Other faults stay.
  Status Reboot();

  const State& state() const { return state_; }
  const Description& description() const { return description_; }
  std::vector<SimulatedDevice> Devices() const { return DevicesOf(description_, state_); }

 private:
  Machine(std::string root, std::string yaml, Description description, State state,
          std::string nvml);
  Status Write();

  std::string root_;
  std::string yaml_;
  Description description_;
  State state_;
  std::string nvml_;
};

}  // namespace bimetal::machines
