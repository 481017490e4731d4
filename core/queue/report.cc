#include "core/queue/report.h"

#include <algorithm>
#include <map>

#include "core/model/saturate.h"
#include "core/queue/gate.h"
#include "core/queue/rank.h"
#include "core/queue/share.h"
#include "core/queue/space.h"

namespace bimetal::core::queue {
namespace {

// A class as the queue's quotas see it: a line, or the kinds that no line counts.
struct Row {
  ClassReport report;
  const QuotaLine* line = nullptr;
  std::int64_t free = 0, open = 0;
};

class Reporter {
 public:
  explicit Reporter(const Snapshot& snapshot)
      : snapshot_(snapshot),
        space_(snapshot),
        shares_(space_.tree, snapshot.past_use, snapshot.now),
        free_(space_.lanes.Free()),
        usable_(space_.lanes.Usable()) {
    for (const Hold& hold : snapshot.holds) AddHold(hold);
    for (const Job& job : snapshot.pending) pending_[job.queue].push_back(&job);
  }

  QueueReport Report(int queue) const;

 private:
  void AddHold(const Hold& hold);
  std::map<std::string, Row> RowsOf(int queue) const;
  std::optional<int> ShareOf(int queue) const;
  void AddPending(int queue, QueueReport* report) const;

  const Snapshot& snapshot_;
  Space space_;
  Shares shares_;
  FreeByKind free_, usable_;
  std::map<int, FreeByKind> held_;  // by queue: devices that are kept for its jobs
  std::map<QueueName, std::vector<const Job*>> pending_;
};

void Reporter::AddHold(const Hold& hold) {
  const auto found = std::find_if(snapshot_.pending.begin(), snapshot_.pending.end(),
                                  [&](const Job& one) { return one.uid == hold.job; });
  if (found == snapshot_.pending.end()) return;
  const Job& job = *found;
  if (hold.variant >= job.variants.size()) return;
  const Variant& variant = job.variants[hold.variant];
  const Lane* lane = space_.lanes.Find(variant.vendor, hold.pool, hold.device_class);
  if (lane == nullptr) return;
  for (int at = space_.tree.Find(job.queue); at != kNoQueue; at = space_.tree.Parent(at)) {
    FreeByKind& held = held_[at];
    held.resize(free_.size(), 0);
    held[lane->kind] = SaturatingAdd(held[lane->kind], DevicesNeeded(job, variant));
  }
}

std::map<std::string, Row> Reporter::RowsOf(int queue) const {
  std::map<std::string, Row> rows;
  const Queue& q = space_.tree.At(queue);
  for (const QuotaLine& line : q.quotas) {
    Row& row = rows[line.device_class];
    row.report.device_class = line.device_class;
    row.line = &line;
  }
  const auto held = held_.find(queue);
  const auto& kinds = space_.tree.kinds();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const auto line = space_.tree.LineFor(queue, kind);
    const std::int64_t used = space_.tree.UsedOfKind(queue, kind);
    const std::int64_t kept = held == held_.end() ? 0 : held->second[kind];
    if (!line && used == 0 && kept == 0) continue;
    const std::string& name = line ? q.quotas[*line].device_class : kinds[kind].device_class;
    Row& row = rows[name];
    row.report.device_class = name;
    row.report.running = SaturatingAdd(row.report.running, used);
    row.report.reserved = SaturatingAdd(row.report.reserved, SaturatingAdd(used, kept));
    row.free = SaturatingAdd(row.free, free_[kind]);
    row.open = SaturatingAdd(row.open, usable_[kind]);
  }
  return rows;
}

// Shares are compared over their weights, so they are shown over them, too.
std::optional<int> Reporter::ShareOf(int queue) const {
  const int parent = space_.tree.Parent(queue);
  if (!shares_.IsOn(parent)) return std::nullopt;
  constexpr std::int64_t kScale = 1'000'000;
  const auto weighed = [&](int one) -> __int128 {
    const Share share = shares_.Of(one);
    if (share.weight <= 0) return 0;
    return static_cast<__int128>(share.value) * kScale / share.weight;
  };
  __int128 all = 0;
  for (const int sibling : space_.tree.Children(parent)) all += weighed(sibling);
  return all == 0 ? 0 : static_cast<int>(weighed(queue) * 1000 / all);
}

void Reporter::AddPending(int queue, QueueReport* report) const {
  const Job* head = nullptr;
  const auto rank = [](const Job& job) { return Rank{job.priority, job.created, job.uid}; };
  const auto waiting = pending_.find(space_.tree.At(queue).name);
  if (waiting == pending_.end()) return;
  for (const Job* job : waiting->second) {
    if (head == nullptr || rank(*job) < rank(*head)) head = job;
    report->oldest_pending = std::min(report->oldest_pending.value_or(job->created), job->created);
  }
  if (head == nullptr) return;
  report->head = head->name_space + "/" + head->name;
  report->starving = WaitsSince(*head) + space_.tree.At(queue).starvation_bound <= snapshot_.now;
}

QueueReport Reporter::Report(int queue) const {
  QueueReport report;
  report.queue = space_.tree.At(queue).name;
  report.problem = space_.tree.ProblemOf(queue);
  report.used = space_.tree.UsedInAll(queue);
  for (auto& [name, row] : RowsOf(queue)) {
    ClassReport& one = row.report;
    const std::int64_t guaranteed = row.line == nullptr ? 0 : row.line->guaranteed;
    const std::int64_t unused = std::max<std::int64_t>(0, guaranteed - one.running);
    one.borrowed = row.line == nullptr ? 0 : std::max<std::int64_t>(0, one.running - guaranteed);
    one.lent = std::clamp<std::int64_t>(std::min(unused, row.open) - row.free, 0, unused);
    one.usable =
        row.line != nullptr && row.line->limit ? std::min(*row.line->limit, row.open) : row.open;
    report.guaranteed = SaturatingAdd(report.guaranteed, guaranteed);
    report.borrowed = SaturatingAdd(report.borrowed, one.borrowed);
    if (guaranteed > row.open) {
      report.mismatch += (report.mismatch.empty() ? "" : "; ") + std::to_string(guaranteed) + " " +
                         name + " devices are guaranteed and " + std::to_string(row.open) +
                         " are open; open more (kubectl get gpunodes), or lower the guarantee";
    }
    report.classes.push_back(std::move(one));
  }
  report.share_milli = ShareOf(queue);
  AddPending(queue, &report);
  return report;
}

}  // namespace

std::vector<QueueReport> ReportQueues(const Snapshot& snapshot) {
  const Reporter reporter(snapshot);
  std::map<QueueName, int> names;
  for (const Queue& queue : snapshot.queues) names.emplace(queue.name, 0);
  std::vector<QueueReport> reports;
  for (int queue = 0; queue < static_cast<int>(names.size()); ++queue) {
    reports.push_back(reporter.Report(queue));
  }
  return reports;
}

}  // namespace bimetal::core::queue
