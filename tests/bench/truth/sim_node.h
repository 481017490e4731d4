#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/devices/inventory.h"
#include "api/agent.pb.h"
#include "core/admission/decide.h"
#include "core/base/result.h"
#include "core/validation/judge.h"
#include "tests/machines/machine.h"

// One simulated node under the real parts: the agent's readers over a machine's files, the
// validation program's library on the host back end, the agent's reader of its lines, and the pure
// judges. Only Kubernetes is missing.
namespace bimetal::truth {

struct NodeSettings {
  std::string probe_program;  // that answers to --probe
  std::string nvml;           // the simulated vendor library
  core::admission::Policy policy;
  const core::validation::FloorTable* table = nullptr;
  const core::validation::FleetMedians* fleet = nullptr;
  std::vector<core::validation::FloorOverride> overrides;
  Millis probe_silence = Seconds(10);
  Millis run_timeout = Seconds(60);
  // Keys of the checks to run, and their level; empty: all of L1.
  std::vector<std::string> checks;
  int level = 1;
};

class SimNode {
 public:
  // Builds the machine of `yaml` in the folder `root`. Errors: those of the machine.
  static Result<SimNode> Make(const std::string& yaml, const std::string& root,
                              const std::string& name, std::int64_t seed, NodeSettings settings);

  NodeSettings& settings() { return settings_; }
  machines::Machine& machine() { return *machine_; }
  const std::string& root() const { return root_; }
  // Devices by their number, as the machine names them.
  std::string DeviceId(std::size_t number) const;
  std::size_t DeviceCount() const { return machine_->Devices().size(); }

  // Faults ---------------------------------------------------------------------------------------
  // One of tests/machines in its own words: "{kind: memory, device: 0, offset: 64, bit: 3}".
  Status Inject(const std::string& fault);
  // One of the validation program's own, put into devices.json: {"kind":"skip"}.
  Status PatchDevice(std::size_t number, const std::string& json);
  // The same node with another description: every `from` becomes `to`. Error where there is none.
  Status Replace(const std::string& from, const std::string& to);
  // A line of the kernel log, without the record's head.
  Status KernelLine(const std::string& text);
  // Another answer of the NVIDIA library: "device 1 remapped 0 0 0 1".
  Status Answer(const std::string& line);
  Status WriteFile(const std::string& path, const std::string& text);
  Status RemoveFolder(const std::string& path);
  // Changes the verdicts of every later run before they are judged.
  void Tamper(std::function<void(api::ValidationRun&)> change) { tamper_ = std::move(change); }
  // Changes what the agent tells, after it was read.
  void Retell(std::function<void(api::Inventory&)> change) { retell_ = std::move(change); }
  void SetRevalidate(std::string word) { revalidate_ = std::move(word); }
  void Wait(Millis time) { now_ = now_ + time; }
  // From now on the agent says nothing new.
  void Silence() { silent_ = true; }

  // What happens --------------------------------------------------------------------------------
  // The agent looks at the machine and tells; one decision follows.
  const core::admission::Decision& Look();
  // Runs what the decisions ask for until nothing is under way. Look comes first.
  const core::admission::Decision& Settle();
  const core::admission::Decision& decision() const { return decision_; }
  const api::Inventory& inventory() const { return inventory_; }

  std::set<std::string> Open() const;
  std::set<std::string> Failed() const;
  int runs() const { return runs_; }
  // Judged verdicts of the last run.
  const std::vector<core::validation::Judged>& judged() const { return judged_; }
  std::vector<core::validation::RateSummary> Rates() const;

 private:
  SimNode() = default;
  void Decide(std::optional<core::admission::Run> run);
  core::admission::Run RunKernels();

  NodeSettings settings_;
  std::string yaml_, root_, name_;
  std::int64_t seed_ = 1;
  std::optional<machines::Machine> machine_;
  std::function<void(api::ValidationRun&)> tamper_;
  std::function<void(api::Inventory&)> retell_;
  std::string revalidate_;
  bool silent_ = false;
  TimePoint now_{1'700'000'000'000};
  std::optional<core::admission::Report> report_;
  api::Inventory inventory_;
  core::admission::Memory memory_;
  core::admission::Decision decision_;
  std::vector<core::validation::Judged> judged_;
  int runs_ = 0;
};

}  // namespace bimetal::truth
