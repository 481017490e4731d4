// The part of JobController that has jobs placed: snapshot, cycle, pods.
#include <algorithm>

#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/create_once.h"
#include "operator/controllers/job_life.h"
#include "operator/controllers/jobs.h"
#include "operator/pods/job_pod.h"

namespace bimetal::op {
namespace {

constexpr int kShownPositions = 50;  // of a queue: design, status budget
constexpr int kAttemptsKept = 10;
// Most pods run, and small ones end, sooner than this after their place is known: one write says
// both. Until it is written the pods themselves are what a restart finds.
constexpr Millis kSayPlaced = Seconds(2);
// Nothing is written before this where only counts have changed (jobs_status.cc).
constexpr Millis kRefusalStands = Seconds(60);

// ", 6 of 8 pods" where the gang starts smaller than it may be.
std::string SizeText(const core::Job& job, const core::queue::Assignment& assignment) {
  const auto pods = static_cast<std::int64_t>(assignment.pods.size());
  if (pods == core::PodCount(job)) return "";
  return ", " + std::to_string(pods) + " of " + std::to_string(core::PodCount(job)) + " pods";
}

// Says of the variants that a restart may not take why not.
void BarVariants(const core::Job& job, const std::vector<std::size_t>& allowed,
                 api::GPUJobStatus* status) {
  for (std::size_t i = 0; i < job.variants.size(); ++i) {
    if (std::find(allowed.begin(), allowed.end(), i) != allowed.end()) continue;
    auto* blocker = status->add_blockers();
    blocker->set_variant(job.variants[i].name);
    blocker->set_reason("SwitchNotAllowed");
    blocker->set_unblocked_by(
        "spec.selection.switchOnRestart is Always, or IfPortable with "
        "spec.checkpoint.portableAcrossVendors true: the job has run on the other vendor");
  }
}

// Of its fair share, or of its evictions.
bool RemembersPast(const core::Queue& queue) {
  return (queue.fair_share && queue.fair_share->half_life > Millis{0}) ||
         queue.preemption.max_evictions_per_hour.has_value();
}

// Makes room for a row without losing what it cost.
void FoldOldestAttempt(api::GPUJobStatus* status) {
  const api::Attempt oldest = status->attempts(0);
  status->mutable_attempts()->DeleteSubrange(0, 1);
  auto* next = status->mutable_attempts(0);
  next->set_device_milliseconds(next->device_milliseconds() + oldest.device_milliseconds());
  if (oldest.device_milliseconds() > 0 && !oldest.has_nano_cost()) next->clear_nano_cost();
  if (next->has_nano_cost()) next->set_nano_cost(next->nano_cost() + oldest.nano_cost());
  next->set_nano_hardware(next->nano_hardware() + oldest.nano_hardware());
  next->set_nano_energy(next->nano_energy() + oldest.nano_energy());
  next->set_nano_labour(next->nano_labour() + oldest.nano_labour());
}

}  // namespace

bool JobController::WantsPlace(const Record& record) const {
  return record.job && record.status.state() == "Pending" && !record.object.spec().suspend() &&
         !HasLivePods(record) && !(record.not_before && clock_.Now() < *record.not_before);
}

void JobController::FoldAttempts(api::GPUJobStatus* status) {
  while (status->attempts_size() >= kAttemptsKept) FoldOldestAttempt(status);
}

std::vector<core::Pod> JobController::AssumedPods() const {
  std::vector<core::Pod> out;
  for (const auto& [uid, record] : records_) {
    for (const auto& [name, pod] : record.assumed) out.push_back(pod);
  }
  return out;
}

void JobController::AddTo(core::queue::Snapshot* snapshot) const {
  if (!started_) return;
  const bool past = std::any_of(snapshot->queues.begin(), snapshot->queues.end(), RemembersPast);
  for (const auto& [uid, record] : records_) {
    if (!record.job) continue;
    if (past) AddPast(record, snapshot);
    const auto vendor = core::ParseVendor(record.status.assignment().vendor());
    if (vendor && (Active(record) || HasLivePods(record))) {
      snapshot->running.push_back(RunningOf(record, *vendor));
    }
    if (!WantsPlace(record)) continue;
    if (record.wished && record.status.attempts().empty()) {
      snapshot->pending.push_back(*record.wished);
    } else {
      snapshot->pending.push_back(core::AsWished(*record.job, record.status, clock_.Now()));
    }
  }
}

JobController::Record* JobController::Find(const Uid& job) {
  const auto it = records_.find(job.value);
  return it == records_.end() ? nullptr : &it->second;
}

bool JobController::Assign(const core::queue::Assignment& assignment) {
  Record* record = Find(assignment.job);
  if (record != nullptr) Place(*record, assignment);
  return record != nullptr;
}

bool JobController::Refuse(const core::queue::Refusal& refusal) {
  Record* record = Find(refusal.job);
  if (record != nullptr) KeepWaiting(*record, refusal);
  return record != nullptr;
}

bool JobController::Evict(const core::queue::Eviction& eviction) {
  Record* record = Find(eviction.job);
  if (record == nullptr) return false;
  if (Active(*record)) {
    EndAttempt(*record, Ended(AttemptEnd::kDisrupted, core::FailureClass::kPreempted, "Preempted",
                              eviction.message));
    WriteStatus(*record);
    touched_.insert(eviction.job.value);
  }
  return true;
}

std::string JobController::ResourceName(const std::string& pool, core::Vendor vendor) const {
  const auto it = store_.pools.find(pool);
  if (it != store_.pools.end() && !it->second.spec().resource_name().empty())
    return it->second.spec().resource_name();
  return std::string(core::DefaultResourceName(vendor));
}

void JobController::Place(Record& record, const core::queue::Assignment& offered) {
  const TimePoint now = clock_.Now();
  // The cycle has seen the allowed variants alone.
  core::queue::Assignment assignment = offered;
  assignment.variant = core::AllowedVariants(*record.job, record.status).at(offered.variant);
  const auto& variant = record.job->variants[assignment.variant];
  auto& status = record.status;
  status.set_attempt(status.attempt() + 1);
  status.set_state("Starting");
  status.set_reason("PodsStarting");
  status.set_message("placed on pool " + assignment.pool.value + " as variant " + variant.name +
                     SizeText(*record.job, assignment));
  status.clear_blockers();
  status.clear_queue_position();
  status.clear_estimated_start();
  status.clear_roles();
  for (const auto& role : record.job->roles) status.add_roles()->set_name(role.name);
  for (const auto& pod : assignment.pods) {
    auto* role = status.mutable_roles(static_cast<int>(pod.role));
    role->set_desired(role->desired() + 1);
  }
  status.set_ready("0/" + std::to_string(assignment.pods.size()));
  auto* place = status.mutable_assignment();
  place->Clear();
  place->set_variant(variant.name);
  place->set_vendor(std::string(core::VendorName(variant.vendor)));
  place->set_pool(assignment.pool.value);
  place->set_devices(static_cast<int>(assignment.devices));
  std::set<std::string> nodes;
  for (const auto& pod : assignment.pods) nodes.insert(pod.node.value);
  FoldAttempts(&status);
  auto* row = status.add_attempts();
  row->set_number(status.attempt());
  row->set_variant(variant.name);
  row->set_start_time(FormatTime(now));
  for (const auto& node : nodes) {
    if (place->nodes_size() == 64) break;
    place->add_nodes(node);
    row->add_nodes(node);
  }
  for (const auto* type : {"QuotaReserved", "Placed"}) {
    SetCondition(status.mutable_conditions(), type, "True", "Placed", status.message(),
                 status.observed_generation(), now);
  }
  SetCondition(status.mutable_conditions(), "PodsReady", "False", "PodsStarting",
               "0 of " + std::to_string(assignment.pods.size()) + " pods run",
               status.observed_generation(), now);
  if (IsTrue(status, "Preempted")) {
    SetCondition(status.mutable_conditions(), "Preempted", "False", "Placed", status.message(),
                 status.observed_generation(), now);
  }
  record.timeline = {};
  record.create_error.clear();
  record.finished.clear();
  record.finished_before_us = 0;
  record.not_before.reset();
  record.say_placed = now + kSayPlaced;
  Log(LogLevel::kInfo, "job placed",
      {{"job", record.job->name},
       {"namespace", record.job->name_space},
       {"variant", variant.name},
       {"pool", assignment.pool.value},
       {"devices", assignment.devices},
       {"attempt", status.attempt()}});
  if (options_.placed && status.attempt() == 1) {
    options_.placed(record.job->queue.value, now - record.job->created);
  }
  CreatePods(record, assignment);
  WriteStatus(record);
}

void JobController::CreateService(Record& record) {
  if (record.service_made || core::PodCount(*record.job) == 1) return;
  record.service_made = true;
  const std::string ns = record.job->name_space, uid = record.job->uid.value;
  Write write{
      "create", "services", ns, GangServiceName(record.object), BuildGangService(record.object),
      {},       {}};
  write.run = [ns, uid, name = write.name, body = write.body](kube::Client& client) {
    return CreateOnce<api::Service>(client, ns, name, body, kJobUidLabel, uid);
  };
  write.done = [this, uid](const Status& status) {
    const auto it = records_.find(uid);
    if (status || it == records_.end()) return;
    it->second.service_made = false;
    if (Active(it->second)) it->second.create_error = status.error().message;
    touched_.insert(uid);
  };
  writes_.Submit(std::move(write));
}

void JobController::CreatePods(Record& record, const core::queue::Assignment& assignment) {
  const core::Job& job = *record.job;
  const auto& variant = job.variants[assignment.variant];
  const GangContext gang{
      record.object,           job,
      assignment.variant,      ResourceName(assignment.pool.value, variant.vendor),
      options_.priority_class, record.status.attempt(),
      GangOf(record)};
  // All are built before the first is sent: a template that cannot be built must not leave half a
  // gang.
  std::vector<std::pair<std::string, std::string>> bodies;
  for (const auto& placement : assignment.pods) {
    auto body = BuildJobPod(gang, placement);
    if (!body) {
      record.create_error = body.error().message;
      touched_.insert(job.uid.value);
      return;
    }
    bodies.emplace_back(JobPodName(gang, placement.role, placement.index), std::move(*body));
  }
  CreateService(record);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const auto& placement = assignment.pods[i];
    core::Pod assumed;
    assumed.uid = Uid{"assumed/" + job.name_space + "/" + bodies[i].first};
    assumed.name_space = job.name_space;
    assumed.name = bodies[i].first;
    assumed.node = placement.node;
    assumed.requests = job.roles[placement.role].requests;
    assumed.devices[variant.vendor] = MilliDevice{variant.devices_per_pod * kWholeDevice.v};
    record.assumed[assumed.name] = assumed;
    Write write{"create", "pods", job.name_space, assumed.name, std::move(bodies[i].second),
                {},       {}};
    write.run = [ns = job.name_space, name = assumed.name, body = write.body,
                 uid = job.uid.value](kube::Client& client) {
      return CreateOnce<api::Pod>(client, ns, name, body, kJobUidLabel, uid);
    };
    write.done = [this, uid = job.uid.value, name = assumed.name,
                  attempt = gang.attempt](const Status& status) {
      const auto it = records_.find(uid);
      if (it == records_.end()) return;
      Record& target = it->second;
      if (status) {
        // The watch shows it now, or it was deleted in a gap of the watch and never will be seen.
        if (target.assumed.contains(name)) target.created[name] = clock_.Now();
        touched_.insert(uid);
        return;
      }
      target.assumed.erase(name);
      if (Active(target) && target.status.attempt() == attempt) {
        target.create_error = "pod " + name + " could not be created: " + status.error().message;
      }
      touched_.insert(uid);
    };
    writes_.Submit(std::move(write));
  }
}

namespace {

void SetEstimate(const core::queue::Refusal& refusal, TimePoint now, api::GPUJobStatus* status) {
  status->clear_estimated_start();
  if (!refusal.estimate) return;
  auto* estimate = status->mutable_estimated_start();
  estimate->set_earliest(FormatTime(refusal.estimate->earliest));
  if (refusal.estimate->latest) estimate->set_latest(FormatTime(*refusal.estimate->latest));
  estimate->set_as_of(FormatTime(now));
  estimate->set_message("what is held for it comes free when the jobs that it awaits have ended");
}

}  // namespace

// The status says so already, but for counts and places that move with every cycle. Most waiting
// jobs of most cycles are such, and putting a status together costs more than deciding on its job.
bool JobController::SaysAlready(const Record& record, const core::queue::Refusal& refusal) const {
  const auto& status = record.status;
  const bool recent = record.refused_at && clock_.Now() < *record.refused_at + kRefusalStands &&
                      record.refused_generation == status.observed_generation();
  if (!recent || status.state() != "Pending" || status.reason() != refusal.reason ||
      status.has_estimated_start() != refusal.estimate.has_value() ||
      static_cast<std::size_t>(status.blockers_size()) < refusal.blockers.size()) {
    return false;
  }
  for (std::size_t i = 0; i < refusal.blockers.size(); ++i) {
    const auto& said = status.blockers(static_cast<int>(i));
    const auto& now = refusal.blockers[i];
    if (said.variant() != now.variant || said.reason() != now.reason || said.need() != now.need) {
      return false;
    }
  }
  return true;
}

void JobController::KeepWaiting(Record& record, const core::queue::Refusal& refusal) {
  if (SaysAlready(record, refusal)) return;
  const TimePoint now = clock_.Now();
  record.refused_at = now;
  record.refused_generation = record.status.observed_generation();
  auto& status = record.status;
  status.set_state("Pending");
  status.set_reason(refusal.reason);
  status.set_message(Cut(refusal.message, 4096));
  status.clear_blockers();
  for (const auto& blocker : refusal.blockers) {
    auto* b = status.add_blockers();
    b->set_variant(blocker.variant);
    b->set_reason(blocker.reason);
    b->set_need(static_cast<int>(std::min<std::int64_t>(blocker.need, 1'000'000'000)));
    b->set_free(static_cast<int>(std::min<std::int64_t>(blocker.free, 1'000'000'000)));
    b->set_unblocked_by(Cut(blocker.unblocked_by, 1024));
  }
  BarVariants(*record.job, core::AllowedVariants(*record.job, status), &status);
  if (refusal.ahead < kShownPositions) {
    auto* position = status.mutable_queue_position();
    position->set_ahead(refusal.ahead);
    position->set_of(refusal.of);
    position->set_as_of(FormatTime(now));
  } else {
    status.clear_queue_position();
  }
  SetEstimate(refusal, now, &status);
  SayUnplaced(record, refusal.reason, refusal.message);
  WriteStatus(record);
}

void JobController::Count(std::map<std::string, QueueCounts>* counts) const {
  for (const auto& [uid, record] : records_) {
    const auto it = counts->find(record.object.spec().queue_name());
    if (it == counts->end()) continue;
    const auto& state = record.status.state();
    if (state == "Completed" || state == "Failed") continue;
    const auto vendor = core::ParseVendor(record.status.assignment().vendor());
    if (vendor && (Active(record) || HasLivePods(record))) {
      ++it->second.admitted;
      it->second.used[*vendor] += record.status.assignment().devices();
    } else {
      ++it->second.pending;
    }
  }
}

}  // namespace bimetal::op
