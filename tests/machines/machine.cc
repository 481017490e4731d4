#include "tests/machines/machine.h"

#include <algorithm>
#include <utility>

namespace bimetal::machines {
namespace {

// A DNS label or subdomain, as Kubernetes takes for a node.
bool IsNodeName(const std::string& name) {
  const auto edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 253 && edge(name.front()) && edge(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return edge(c) || c == '-' || c == '.'; });
}

std::string LibraryIn(const std::string& root) {
  return root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
}

}  // namespace

Machine::Machine(std::string root, std::string yaml, Description description, State state,
                 std::string nvml)
    : root_(std::move(root)),
      yaml_(std::move(yaml)),
      description_(std::move(description)),
      state_(std::move(state)),
      nvml_(std::move(nvml)) {}

Result<Machine> Machine::Build(const std::string& description_yaml, const std::string& root,
                               const std::string& node, std::int64_t seed,
                               const std::string& nvml_library) {
  if (!IsNodeName(node)) return Fail(ErrorCode::kInvalid, "'" + node + "' is no node name");
  BIMETAL_TRY_ASSIGN(Description description, ParseDescription(description_yaml));
  State state;
  state.node = node;
  state.seed = seed;
  for (Fault fault : description.faults) {
    fault.sequence = state.next_sequence++;
    state.faults.push_back(fault);
  }
  Machine machine(root, description_yaml, std::move(description), std::move(state), nvml_library);
  BIMETAL_TRY(machine.Write());
  return machine;
}

Result<Machine> Machine::Open(const std::string& root) {
  const auto yaml = ReadFile(root + "/machine/description.yaml");
  const auto state_text = ReadFile(root + "/machine/state.yaml");
  if (!yaml || !state_text) {
    return Fail(ErrorCode::kNotFound, root + " is no machine that bimetal-machine has built");
  }
  auto description = ParseDescription(*yaml);
  auto state = ParseState(*state_text);
  if (!description || !state) {
    return Fail(
        ErrorCode::kData,
        root + "/machine: " + (description ? state.error().message : description.error().message));
  }
  return Machine(root, *yaml, std::move(*description), std::move(*state), LibraryIn(root));
}

Status Machine::Inject(Fault fault) {
  BIMETAL_TRY(CheckFault(fault, description_));
  fault.sequence = state_.next_sequence++;
  state_.faults.push_back(fault);
  return Write();
}

Result<std::size_t> Machine::Clear(std::optional<int> device, std::optional<Fault::Kind> kind) {
  const std::size_t removed = std::erase_if(state_.faults, [&](const Fault& fault) {
    return (!device || fault.device == *device) && (!kind || fault.kind == *kind);
  });
  BIMETAL_TRY(Write());
  return removed;
}

Status Machine::Reboot() {
  ++state_.boots;
  state_.next_sequence = 100;
  std::erase_if(state_.faults, [](const Fault& f) { return f.kind == Fault::Kind::kXid; });
  return Write();
}

Status Machine::Write() {
  Tree tree = RenderMachine(description_, state_, nvml_);
  tree["machine/description.yaml"] = {File::Kind::kText, yaml_};
  tree["machine/state.yaml"] = {File::Kind::kText, FormatState(state_)};
  return ApplyTree(root_, tree);
}

}  // namespace bimetal::machines
