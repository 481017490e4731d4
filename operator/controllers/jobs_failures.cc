// The part of JobController that remembers which nodes fail jobs.
#include <algorithm>

#include "operator/controllers/conditions.h"
#include "operator/controllers/job_life.h"
#include "operator/controllers/jobs.h"

namespace bimetal::op {

// What an attempt's end says about the nodes under it.
void JobController::NoteEnd(const Record& record, const AttemptView& view) {
  const auto vendor = core::ParseVendor(record.status.assignment().vendor());
  if (!vendor) return;
  if (view.end == AttemptEnd::kCompleted) {
    for (const auto& node : record.timeline.Nodes()) failures_.NoteSuccess(node, *vendor);
  }
  if (!view.failure) return;
  for (const auto& node : view.nodes) {
    NoteFailure({.node = node,
                 .vendor = *vendor,
                 .failure = *view.failure,
                 .refused = view.reason == "NodeRefusedPod",
                 .name_space = record.job->name_space,
                 .job = record.job->name,
                 .when = clock_.Now()});
  }
}

void JobController::NoteFailure(const NodeFailure& failure) {
  if (const auto suspicion = failures_.Note(failure)) {
    nodes_.Suspect(failure.node, failure.vendor, suspicion->event, suspicion->evidence);
  }
}

// The failures of nodes are not stored: they are read again from the rows of all jobs.
void JobController::RecallFailures() {
  std::vector<std::pair<NodeFailure, bool>> seen;  // and whether it is a success
  for (const auto& [uid, record] : records_) {
    for (const auto& row : record.status.attempts()) {
      const auto when = ParseTime(row.end_time());
      const auto vendor = VendorOfVariant(record.object.spec(), row.variant());
      if (!when || !vendor || *when + NodeFailures::Options{}.window < clock_.Now()) continue;
      const auto failure = core::ParseFailureClass(row.class_());
      const bool success = row.outcome() == "Completed";
      if (!failure && !success) continue;
      NodeFailure one{.node = "",
                      .vendor = *vendor,
                      .failure = failure.value_or(core::FailureClass::kUserError),
                      .refused = row.reason() == "NodeRefusedPod",
                      .name_space = record.object.metadata().namespace_(),
                      .job = record.object.metadata().name(),
                      .when = *when};
      for (const auto& node : success ? row.nodes() : row.failed_nodes()) {
        one.node = node;
        seen.emplace_back(one, success);
      }
    }
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const auto& a, const auto& b) { return a.first.when < b.first.when; });
  for (const auto& [one, success] : seen) {
    if (success) {
      failures_.NoteSuccess(one.node, one.vendor);
    } else {
      NoteFailure(one);
    }
  }
}

// A finding may come after the failure that it explains; then the program was not to blame.
void JobController::Reclassify(Record& record) {
  auto& status = record.status;
  auto* row = CurrentRow(status);
  if (row == nullptr || status.state() != "Restarting") return;
  const auto failure = core::ParseFailureClass(row->class_());
  if (failure != core::FailureClass::kUserError && failure != core::FailureClass::kOutOfMemory)
    return;
  for (const PodRecord* pod : PodsOf(record, true)) {
    const std::string fault = nodes_.FaultUnder(pod->holds.uid);
    if (fault.empty()) continue;
    if (core::RuleFor(*record.job, *failure).counts && status.failures() > 0 &&
        !core::RuleFor(*record.job, core::FailureClass::kDeviceFault).counts) {
      status.set_failures(status.failures() - 1);
    }
    AttemptView view =
        Ended(AttemptEnd::kDisrupted, core::FailureClass::kDeviceFault, "DeviceFault",
              fault + " under pod " + pod->holds.name + "; " + row->message());
    view.nodes.insert(pod->holds.node.value);
    const std::string end = row->end_time();
    CloseRow(record, view);
    row->set_end_time(end);
    status.set_reason(view.reason);
    status.set_message(Cut(view.message, 4096));
    NoteEnd(record, view);
    Tell(record);
    return;
  }
}

}  // namespace bimetal::op
