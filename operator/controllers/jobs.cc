#include "operator/controllers/jobs.h"

#include <algorithm>

#include "core/base/log.h"
#include "operator/controllers/conditions.h"

namespace bimetal::op {
namespace {

// Pauses before the next attempt: the program failed; the stock scheduler refused; a pod was lost.
constexpr Millis kFailurePause = Seconds(5);
constexpr Millis kSetbackPause = Seconds(5);
constexpr Millis kDisruptionPause = Seconds(1);
constexpr Millis kLongestPause = Minutes(5);
constexpr Millis kUnseen = Seconds(60);

bool IsFinal(const api::GPUJobStatus& status) {
  return status.state() == "Completed" || status.state() == "Failed";
}

Millis Doubled(Millis first, int times) {
  Millis pause = first;
  for (int i = 1; i < times && pause < kLongestPause; ++i) pause = pause + pause;
  return std::min(pause, kLongestPause);
}

std::string_view OutcomeName(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::kNone:
      return "";
    case AttemptEnd::kCompleted:
      return "Completed";
    case AttemptEnd::kFailed:
      return "Failed";
    case AttemptEnd::kDisrupted:
      return "Disrupted";
    case AttemptEnd::kNotScheduled:
      return "NotScheduled";
  }
  return "";
}

api::Attempt* CurrentRow(api::GPUJobStatus& status) {
  for (auto& row : *status.mutable_attempts()) {
    if (row.number() == status.attempt()) return &row;
  }
  return nullptr;
}

}  // namespace

JobController::JobController(const Clock& clock, Store& store, NodeController& nodes,
                             WriteSink& writes, JobOptions options, std::function<void()> changed)
    : clock_(clock),
      store_(store),
      nodes_(nodes),
      writes_(writes),
      options_(std::move(options)),
      changed_(std::move(changed)) {}

void JobController::Start() {
  for (const auto& [key, pod] : store_.pods) OnPod(pod, false);
  started_ = true;
  TouchAll();
}

void JobController::TouchAll() {
  for (const auto& [uid, record] : records_) touched_.insert(uid);
}

void JobController::OnJob(const api::GPUJob& job) {
  const std::string& uid = job.metadata().uid();
  auto [it, fresh] = records_.try_emplace(uid);
  Record& record = it->second;
  record.object = job;
  // The status is ours: read once, at first sight, then only written.
  if (fresh) record.status = record.written = job.status();
  touched_.insert(uid);
  if (fresh) changed_();
}

void JobController::OnJobDeleted(const api::GPUJob& job) {
  records_.erase(job.metadata().uid());
  touched_.insert(job.metadata().uid());  // its pods are orphans now
  changed_();
}

void JobController::OnPod(const PodRecord& pod, bool gone) {
  const ObjectKey key{pod.holds.name_space, pod.holds.name};
  if (gone) {
    deleting_.erase({pod.holds.uid.value, false});
    deleting_.erase({pod.holds.uid.value, true});
  }
  if (!pod.holds.of_job) {
    changed_();  // a foreign pod holds or frees something
    return;
  }
  const std::string& uid = pod.holds.of_job->job.value;
  touched_.insert(uid);
  const auto it = records_.find(uid);
  if (it == records_.end()) return;
  Record& record = it->second;
  record.assumed.erase(pod.holds.name);
  record.created.erase(pod.holds.name);
  if (pod.holds.of_job->attempt == record.status.attempt()) {
    record.timeline.See(pod, clock_.Now(), started_);
    if (gone) record.timeline.Gone(pod.holds.name, clock_.Now());
  }
  if (gone || pod.ended) changed_();
}

std::vector<const PodRecord*> JobController::PodsOf(const Record& record,
                                                    bool current_attempt) const {
  std::vector<const PodRecord*> out;
  const auto keys = store_.pods_by_job.find(record.object.metadata().uid());
  if (keys == store_.pods_by_job.end()) return out;
  for (const auto& key : keys->second) {
    const PodRecord& pod = store_.pods.at(key);
    if (!current_attempt || pod.holds.of_job->attempt == record.status.attempt())
      out.push_back(&pod);
  }
  return out;
}

bool JobController::HasLivePods(const Record& record) const {
  const auto pods = PodsOf(record, false);
  return !record.assumed.empty() ||
         std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return !pod->ended; });
}

bool JobController::Active(const Record& record) const {
  return record.status.state() == "Starting" || record.status.state() == "Running";
}

void JobController::Wake(Record& record, TimePoint when) {
  if (!record.wake || when < *record.wake) record.wake = when;
}

void JobController::DeleteLivePods(const Record& record, bool older_attempts_only) {
  for (const PodRecord* pod : PodsOf(record, false)) {
    if (pod->ended) continue;
    if (older_attempts_only && pod->holds.of_job->attempt == record.status.attempt()) continue;
    const auto node = store_.nodes.find(pod->holds.node.value);
    // Nobody is left on a lost node to end the pod in peace: its object goes at once, else the gang
    // could never start again.
    const bool lost =
        pod->bound &&
        (node == store_.nodes.end() ||
         (node->second.not_ready_since &&
          *node->second.not_ready_since + options_.attempt.node_lost_after <= clock_.Now()));
    const ObjectKey key{pod->holds.name_space, pod->holds.name};
    if (pod->deleting && !lost) continue;
    // Once in peace, and once by force where its node turns out to be lost.
    if (!deleting_.insert({pod->holds.uid.value, lost}).second) continue;
    Write write{"delete", "pods", key.first, key.second, "", {}, {}};
    kube::DeleteOptions options{
        .uid = pod->holds.uid.value, .grace_seconds = {}, .propagation = ""};
    if (lost) options.grace_seconds = 0;
    write.run = [key, options](kube::Client& client) -> Status {
      auto status = client.Delete<api::Pod>(key.first, key.second, options);
      if (!status && status.error().code == ErrorCode::kNotFound) return {};
      return status;
    };
    write.done = [this, key, pod_uid = pod->holds.uid.value, lost,
                  uid = record.object.metadata().uid()](const Status& status) {
      if (status) return;
      deleting_.erase({pod_uid, lost});  // so that it is asked for again
      Log(LogLevel::kWarning, "pod could not be deleted",
          {{"pod", key.first + "/" + key.second}, {"error", status.error().message}});
      touched_.insert(uid);
    };
    writes_.Submit(std::move(write));
  }
}

void JobController::DeleteOrphans() {
  for (const auto& uid : touched_) {
    if (records_.contains(uid)) continue;
    const auto keys = store_.pods_by_job.find(uid);
    if (keys == store_.pods_by_job.end()) continue;
    Record orphan;
    orphan.object.mutable_metadata()->set_uid(uid);
    DeleteLivePods(orphan, false);
  }
}

void JobController::Reconcile() {
  if (!started_) return;
  const TimePoint now = clock_.Now();
  for (const auto& [uid, record] : records_) {
    if (record.wake && *record.wake <= now) touched_.insert(uid);
  }
  DeleteOrphans();
  const std::set<std::string> uids = std::exchange(touched_, {});
  for (const auto& uid : uids) {
    if (const auto it = records_.find(uid); it != records_.end()) Follow(it->second);
  }
}

void JobController::Follow(Record& record) {
  record.wake.reset();
  if (IsFinal(record.status)) {
    // A pod whose create was still under way when the end came.
    if (record.status.state() == "Failed") DeleteLivePods(record, false);
    WriteStatus(record);
    return;
  }
  const auto& spec = record.object.spec();
  std::int64_t priority = 0;
  Status known;
  if (!spec.priority_class_name().empty()) {
    const auto it = store_.priorities.find(spec.priority_class_name());
    if (it == store_.priorities.end()) {
      known = Fail(ErrorCode::kInvalid, "spec.priorityClassName: there is no PriorityClass \"" +
                                            spec.priority_class_name() +
                                            "\"; create it or leave the field out");
    } else {
      priority = it->second;
    }
  }
  auto job = core::JobFromApi(record.object, priority);
  if (job && !known) job = tl::unexpected<Error>(known.error());
  // What was admitted goes on as it was: a PriorityClass that vanished is no reason to end a gang.
  const bool under_way = record.job && (Active(record) || HasLivePods(record));
  if (job || !under_way) record.job = std::move(job);
  record.status.set_observed_generation(record.object.metadata().generation());
  if (!record.job) {
    record.status.set_state("Pending");
    record.status.set_reason("Misconfigured");
    record.status.set_message(Cut(record.job.error().message, 4096));
    record.status.clear_blockers();
    SetCondition(record.status.mutable_conditions(), "Placed", "False", "Misconfigured",
                 record.status.message(), record.status.observed_generation(), clock_.Now());
    WriteStatus(record);
    return;
  }
  ForgetUnseen(record);
  Adopt(record);
  DeleteLivePods(record, true);
  if (Active(record)) FollowAttempt(record);
  // Before a pause forgets where the attempt ran.
  Bill(record);
  if (!Active(record)) FollowPause(record);
  WriteStatus(record);
}

// A pod that was made and is still not seen after this long was deleted before the watch showed it.
void JobController::ForgetUnseen(Record& record) {
  const TimePoint now = clock_.Now();
  for (auto it = record.created.begin(); it != record.created.end();) {
    if (it->second + kUnseen <= now) {
      record.assumed.erase(it->first);
      it = record.created.erase(it);
    } else {
      Wake(record, it->second + kUnseen);
      ++it;
    }
  }
}

// Pods of a later attempt than the status knows of: the operator ended between making them and
// writing so.
void JobController::Adopt(Record& record) {
  int latest = record.status.attempt();
  const PodRecord* newest = nullptr;
  for (const PodRecord* pod : PodsOf(record, false)) {
    if (pod->holds.of_job->attempt > latest) {
      latest = pod->holds.of_job->attempt;
      newest = pod;
    }
  }
  if (newest == nullptr) return;
  record.status.set_attempt(latest);
  record.status.set_state("Starting");
  record.timeline = {};
  record.finished.clear();
  record.status.clear_roles();  // those of the attempt before
  std::set<std::string> nodes;
  for (const PodRecord* pod : PodsOf(record, true)) {
    record.timeline.See(*pod, clock_.Now(), false);
    nodes.insert(pod->holds.node.value);
  }
  auto* assignment = record.status.mutable_assignment();
  assignment->Clear();
  for (const auto& variant : record.job->variants) {
    if (variant.name != newest->variant) continue;
    assignment->set_variant(variant.name);
    assignment->set_vendor(std::string(core::VendorName(variant.vendor)));
    assignment->set_devices(static_cast<int>(core::DevicesNeeded(*record.job, variant)));
    const auto pools = PoolsOf(store_);
    const auto node = store_.nodes.find(newest->holds.node.value);
    if (node != store_.nodes.end()) {
      if (const auto* pool = PoolFor(pools, variant.vendor, node->second.node.labels)) {
        assignment->set_pool(pool->name.value);
      }
    }
  }
  for (const auto& node : nodes) {
    if (assignment->nodes_size() < 64) assignment->add_nodes(node);
  }
  FoldAttempts(&record.status);
  auto* row = record.status.add_attempts();
  row->set_number(latest);
  row->set_variant(newest->variant);
  row->set_start_time(FormatTime(newest->created));
  Log(LogLevel::kInfo, "attempt adopted",
      {{"job", record.object.metadata().name()}, {"attempt", latest}});
}

int JobController::FinishedAndGone(Record& record, const std::vector<const PodRecord*>& pods) {
  std::set<std::string> present;
  for (const PodRecord* pod : pods) {
    if (!pod->succeeded) continue;
    present.insert(pod->holds.name);
    record.finished.insert(pod->holds.name);
  }
  if (!record.finished_before_us) {
    int counted = 0;
    for (const auto& role : record.status.roles()) counted += role.succeeded();
    record.finished_before_us = std::max(0, counted - static_cast<int>(present.size()));
  }
  return *record.finished_before_us + static_cast<int>(record.finished.size() - present.size());
}

void JobController::FollowAttempt(Record& record) {
  AttemptFacts facts;
  facts.job = &*record.job;
  facts.pods = PodsOf(record, true);
  facts.nodes = &store_.nodes;
  for (const auto& [name, pod] : record.assumed) facts.requested.insert(name);
  facts.finished_and_gone = FinishedAndGone(record, facts.pods);
  if (record.timeline.empty()) {
    for (const PodRecord* pod : facts.pods) record.timeline.See(*pod, clock_.Now(), false);
  }
  if (!record.create_error.empty()) {
    const std::string message = std::exchange(record.create_error, "");
    EndAttempt(record, AttemptEnd::kNotScheduled, "PodRefused", message);
    return;
  }
  if (record.object.spec().suspend()) {
    EndAttempt(record, AttemptEnd::kDisrupted, "Suspended", "spec.suspend is true");
    return;
  }
  const AttemptView view = JudgeAttempt(facts, options_.attempt, clock_.Now());
  int ready = 0;
  // A member that succeeded stays counted although its pod may be deleted later.
  std::map<std::string, int> succeeded;
  for (const auto& role : record.status.roles()) succeeded[role.name()] = role.succeeded();
  record.status.clear_roles();
  for (std::size_t r = 0; r < view.roles.size(); ++r) {
    auto* role = record.status.add_roles();
    role->set_name(record.job->roles[r].name);
    role->set_desired(static_cast<int>(record.job->roles[r].replicas));
    role->set_ready(view.roles[r].ready);
    role->set_succeeded(std::max(view.roles[r].succeeded, succeeded[role->name()]));
    role->set_failed(view.roles[r].failed);
    ready += view.roles[r].ready;
  }
  record.status.set_ready(std::to_string(ready) + "/" +
                          std::to_string(core::PodCount(*record.job)));
  if (view.end != AttemptEnd::kNone) {
    EndAttempt(record, view.end, view.reason, view.message);
    return;
  }
  record.status.set_state(view.state);
  record.status.set_reason(view.reason);
  record.status.set_message(Cut(view.message, 4096));
  SetCondition(record.status.mutable_conditions(), "PodsReady",
               view.state == "Running" ? "True" : "False", view.reason, view.message,
               record.status.observed_generation(), clock_.Now());
  if (view.state == "Running") record.setbacks = 0;
  if (view.recheck) Wake(record, clock_.Now() + Seconds(1));
}

void JobController::EndAttempt(Record& record, AttemptEnd end, const std::string& reason,
                               const std::string& message) {
  const TimePoint now = clock_.Now();
  Log(LogLevel::kInfo, "attempt ended",
      {{"job", record.object.metadata().name()},
       {"namespace", record.object.metadata().namespace_()},
       {"attempt", record.status.attempt()},
       {"outcome", OutcomeName(end)},
       {"reason", reason}});
  Bill(record);
  if (auto* row = CurrentRow(record.status)) {
    row->set_end_time(FormatTime(now));
    row->set_outcome(reason == "Suspended" ? "Suspended" : std::string(OutcomeName(end)));
    row->set_message(Cut(message, 1024));
  }
  SetCondition(record.status.mutable_conditions(), "PodsReady", "False", reason, message,
               record.status.observed_generation(), now);
  changed_();
  if (end == AttemptEnd::kCompleted) {
    Finish(record, "Completed", "Completed", message);
    return;
  }
  record.status.set_state("Restarting");
  record.status.set_reason(reason);
  record.status.set_message(Cut(message, 4096));
  if (end == AttemptEnd::kFailed) {
    record.status.set_failures(record.status.failures() + 1);
    if (record.status.failures() > record.job->retry_limit) {
      // Final only when its last pod is gone, so that the bill is whole.
      record.status.set_state("Stopping");
      record.status.set_reason("RetryLimitReached");
      record.status.set_message(Cut(
          "failed " + std::to_string(record.status.failures()) + " times, spec.retry.limit is " +
              std::to_string(record.job->retry_limit) + "; last: " + message,
          4096));
    }
    record.not_before = now + Doubled(kFailurePause, record.status.failures());
  } else if (end == AttemptEnd::kNotScheduled) {
    record.not_before = now + Doubled(kSetbackPause, ++record.setbacks);
  } else {
    record.not_before = now + Doubled(kDisruptionPause, ++record.setbacks);
  }
  DeleteLivePods(record, false);
}

// Between attempts: wait until the old pods are gone and the pause is over.
void JobController::FollowPause(Record& record) {
  if (IsFinal(record.status)) return;
  auto& status = record.status;
  const TimePoint now = clock_.Now();
  if (HasLivePods(record)) {
    if (status.state().empty() || status.state() == "Pending") status.set_state("Restarting");
    DeleteLivePods(record, false);
    Wake(record, now + Seconds(5));
    return;
  }
  if (status.state() == "Stopping") {
    Finish(record, "Failed", status.reason(), status.message());
    return;
  }
  if (record.object.spec().suspend()) {
    status.set_state("Suspended");
    status.set_reason("Suspended");
    status.set_message("spec.suspend is true; set it to false to have the job placed");
    status.clear_assignment();
    status.clear_blockers();
    status.clear_ready();
    return;
  }
  if (record.not_before && now < *record.not_before) {
    Wake(record, *record.not_before);
    return;
  }
  if (status.state() != "Pending") {
    status.set_state("Pending");
    status.set_reason("PendingEvaluation");
    status.set_message("waits for the next scheduling cycle");
    status.clear_assignment();
    status.clear_ready();
    status.clear_roles();
    changed_();
  }
}

void JobController::Finish(Record& record, const std::string& state, const std::string& reason,
                           const std::string& message) {
  const TimePoint now = clock_.Now();
  Bill(record);
  record.status.set_state(state);
  record.status.set_reason(reason);
  record.status.set_message(Cut(message, 4096));
  record.status.clear_blockers();
  record.status.clear_queue_position();
  SetCondition(record.status.mutable_conditions(), state == "Completed" ? "Complete" : "Failed",
               "True", reason, message, record.status.observed_generation(), now);
  Bill(record);
  changed_();
}

// The current attempt's row and the totals, from its timeline. Calling it again changes nothing
// once every pod has ended.
void JobController::Bill(Record& record) {
  auto* row = CurrentRow(record.status);
  if (row == nullptr || record.timeline.empty() || !record.job) return;
  if (record.status.assignment().pool().empty()) return;  // of an attempt that is over
  const core::Variant* variant = nullptr;
  for (const auto& v : record.job->variants) {
    if (v.name == row->variant()) variant = &v;
  }
  if (variant == nullptr) return;
  // While it runs the figure is refreshed with the other writes of the status; the metrics are
  // live.
  std::map<std::string, std::string> models;
  for (const auto& node : record.timeline.Nodes())
    models[node] = nodes_.ModelOf(node, variant->vendor);
  const auto intervals =
      record.timeline.Intervals(variant->vendor, variant->devices_per_pod, clock_.Now(), models);
  std::optional<core::cost::PriceBook> book;
  const auto pool = store_.pools.find(record.status.assignment().pool());
  std::string missing;
  if (pool == store_.pools.end() || pool->second.spec().price_book_name().empty()) {
    missing = "the pool names no PriceBook; set spec.priceBookName of GPUPool " +
              record.status.assignment().pool();
  } else {
    const auto& name = pool->second.spec().price_book_name();
    const auto object = store_.price_books.find(name);
    if (object == store_.price_books.end()) {
      missing = "there is no PriceBook " + name + "; create it";
    } else if (auto parsed = core::cost::PriceBookFromApi(object->second); parsed) {
      book = std::move(*parsed);
    } else {
      missing = "PriceBook " + name + ": " + parsed.error().message;
    }
  }
  const auto bill = core::cost::PriceIntervals(intervals, book ? &*book : nullptr);
  if (bill.device_ms < row->device_milliseconds()) {
    // Pods of this attempt are gone that an earlier operator had seen: what it wrote stays.
    record.status.mutable_usage()->set_message(
        "pods vanished while the operator was away; their device time is that of the last report");
    return;
  }
  if (missing.empty() && !bill.missing.empty()) missing = bill.missing.front();

  auto& usage = *record.status.mutable_usage();
  const std::int64_t before_ms = usage.device_milliseconds() - row->device_milliseconds();
  const std::int64_t before_nano = usage.nano_cost() - row->nano_cost();
  // The oldest row may carry the sums of rows that were folded into it; it is never the current one
  // then.
  row->set_device_milliseconds(bill.device_ms);
  row->set_nano_hardware(bill.hardware.v);
  row->set_nano_energy(bill.energy.v);
  row->set_nano_labour(bill.labour.v);
  if (!models.empty()) row->set_model(Cut(models.begin()->second, 256));
  if (bill.unpriced_ms == 0)
    row->set_nano_cost(bill.Total().v);
  else
    row->clear_nano_cost();
  usage.set_device_milliseconds(before_ms + bill.device_ms);
  usage.set_nano_cost(before_nano + row->nano_cost());
  usage.set_device_seconds(core::cost::FormatSeconds(usage.device_milliseconds()));
  const bool unpriced =
      std::any_of(record.status.attempts().begin(), record.status.attempts().end(),
                  [](const auto& a) { return a.device_milliseconds() > 0 && !a.has_nano_cost(); });
  if (unpriced) {
    usage.set_basis("PriceMissing");
    usage.clear_cost();
    usage.set_message(Cut(missing, 1024));
  } else {
    if (book) usage.set_currency(book->currency);
    usage.set_basis(IsFinal(record.status) ? "Final" : "Running");
    usage.set_cost(core::cost::FormatMoney(NanoCurrency{usage.nano_cost()}) + " " +
                   usage.currency());
    usage.clear_message();
  }
}

std::optional<TimePoint> JobController::NextWake() const {
  std::optional<TimePoint> next;
  for (const auto& [uid, record] : records_) {
    if (record.wake && (!next || *record.wake < *next)) next = record.wake;
  }
  return next;
}

}  // namespace bimetal::op
