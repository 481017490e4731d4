#include "operator/controllers/node_failures.h"

#include <algorithm>
#include <set>

namespace bimetal::op {
namespace {

constexpr std::size_t kMostFailures = 64;  // of one node

bool IsOfProgram(const NodeFailure& failure) {
  return failure.failure == core::FailureClass::kUserError ||
         failure.failure == core::FailureClass::kOutOfMemory;
}

// What the node can be blamed for. A lost node is closed by its own silence.
bool IsOfNode(const NodeFailure& failure) {
  return failure.failure == core::FailureClass::kDeviceFault || failure.refused;
}

std::string Name(const NodeFailure& failure) {
  return failure.name_space + "/" + failure.job + " (" +
         std::string(core::FailureClassName(failure.failure)) + ")";
}

}  // namespace

std::optional<Suspicion> NodeFailures::Note(const NodeFailure& failure) {
  if (!IsOfProgram(failure) && !IsOfNode(failure)) return std::nullopt;
  auto& list = failures_[{failure.node, failure.vendor}];
  std::erase_if(list,
                [&](const NodeFailure& old) { return old.when + options_.window < failure.when; });
  list.push_back(failure);
  if (list.size() > kMostFailures) list.erase(list.begin());

  std::set<std::string> teams, jobs, names;
  for (const NodeFailure& one : list) {
    if (IsOfNode(one)) {
      jobs.insert(one.name_space + "/" + one.job);
    } else {
      teams.insert(one.name_space);
    }
    names.insert(Name(one));
  }
  if (teams.size() < options_.owners && jobs.size() < options_.owners) return std::nullopt;
  Suspicion out;
  out.event = "NodeSuspect/" + FormatTime(failure.when);
  std::string who;
  for (const auto& name : names) who += (who.empty() ? "" : ", ") + name;
  out.evidence = std::to_string(names.size()) + " jobs of different owners failed here within " +
                 FormatDuration(options_.window) + ": " + who;
  list.clear();
  return out;
}

void NodeFailures::NoteSuccess(const std::string& node, core::Vendor vendor) {
  const auto it = failures_.find({node, vendor});
  if (it == failures_.end()) return;
  std::erase_if(it->second, IsOfProgram);
  if (it->second.empty()) failures_.erase(it);
}

}  // namespace bimetal::op
