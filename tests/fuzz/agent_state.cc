// What an earlier agent left on the disk, and what still holds of it.
#include "agent/state/node_state.h"
#include "agent/state/state_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tree.h"

BIMETAL_FUZZ(text) {
  static const Tree tree;
  tree.Write("agent.json", text);
  const agent::StateFile file(tree.root());
  auto saved = file.Load();
  if (!saved) return Require(!saved.error().message.empty());
  agent::NodeState state(std::move(*saved));
  Require(state.AcceptableRuns().empty());  // the boot is not known yet
  state.Observe("b", {{"nvidia", "f"}});
  Require(state.RunsToReport().size() <= agent::NodeState::kMaxRunsPerReport);
  if (state.saved().boot_id() != "b") return;
  Require(file.Save(state.saved()).has_value());
  const auto again = file.Load();
  Require(again && again->SerializeAsString() == state.saved().SerializeAsString());
}
