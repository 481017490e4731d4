// The part of JobController that writes statuses: at most one write per job and transition.
#include <google/protobuf/util/message_differencer.h>

#include <utility>

#include "operator/controllers/job_life.h"
#include "operator/controllers/jobs.h"
#include "operator/controllers/status_write.h"

namespace bimetal::op {
namespace {

using google::protobuf::util::MessageDifferencer;

// Changes of these fields alone wait: counters that move while nothing happens to the job.
constexpr Millis kCountersPause = Seconds(2);   // of a running job
constexpr Millis kStartingPause = Seconds(10);  // of one whose pods start: most soon run, or fail
constexpr Millis kWaitingPause = Seconds(60);   // of a waiting job
constexpr Millis kWriteRetryPause = Seconds(1);
// Where so many writes wait, the API server is what everybody waits for: a job says where it stands
// when its turn comes, and what it would have said of the time before is left unsaid.
constexpr std::size_t kCrowd = 64;

// What moves with every second of a running job.
void ClearBill(api::GPUJobStatus* status) {
  status->clear_usage();
  for (auto& row : *status->mutable_attempts()) {
    row.clear_device_milliseconds();
    row.clear_nano_cost();
    row.clear_nano_hardware();
    row.clear_nano_energy();
    row.clear_nano_labour();
    row.clear_model();
  }
}

api::GPUJobStatus Essence(api::GPUJobStatus status) {
  status.clear_queue_position();
  status.clear_estimated_start();
  status.clear_ready();
  status.clear_roles();
  status.clear_message();
  for (auto& blocker : *status.mutable_blockers()) {
    blocker.clear_free();
    blocker.clear_unblocked_by();
  }
  for (auto& condition : *status.mutable_conditions()) condition.clear_message();
  const bool final = status.state() == "Completed" || status.state() == "Failed";
  if (!final) {
    ClearBill(&status);
  }
  return status;
}

// Usage alone is never a reason to write while a job runs: the metrics are live.
api::GPUJobStatus WithoutUsage(api::GPUJobStatus status) {
  status.clear_queue_position();
  status.clear_estimated_start();
  ClearBill(&status);
  return status;
}

Millis PauseOf(const api::GPUJobStatus& status, const api::GPUJobStatus& written) {
  if (status.state() == "Pending") return kWaitingPause;
  const bool starts = status.state() == "Starting" && status.ready() == written.ready();
  return starts ? kStartingPause : kCountersPause;
}

}  // namespace

void JobController::WriteStatus(Record& record) {
  Tell(record);
  // The cycle that follows in the same step has more to say.
  if (record.status.reason() == "PendingEvaluation") return;
  if (record.write_in_flight || MessageDifferencer::Equals(record.status, record.written)) return;
  const TimePoint now = clock_.Now();
  if (record.status.state() == "Starting" && record.say_placed && now < *record.say_placed) {
    Wake(record, *record.say_placed);
    return;
  }
  if (record.last_write &&
      MessageDifferencer::Equals(Essence(record.status), Essence(record.written))) {
    if (MessageDifferencer::Equals(WithoutUsage(record.status), WithoutUsage(record.written)) &&
        record.status.state() != "Pending") {
      return;
    }
    const Millis pause = PauseOf(record.status, record.written);
    if (now < *record.last_write + pause) {
      Wake(record, *record.last_write + pause);
      return;
    }
  }
  if (writes_.Depth() >= kCrowd && !IsFinal(record.status)) {
    if (!std::exchange(record.unsaid, true)) unsaid_.push_back(record.object.metadata().uid());
    return;
  }
  record.write_in_flight = true;
  record.last_write = now;
  api::GPUJob target;
  *target.mutable_metadata() = record.object.metadata();
  *target.mutable_status() = record.status;
  const std::string uid = record.object.metadata().uid();
  Write write = StatusWrite(target);
  write.done = [this, uid, sent = record.status](const Status& result) {
    const auto it = records_.find(uid);
    if (it == records_.end()) return;
    if (SettleStatusWrite(it->second, sent, result, "job")) {
      touched_.insert(uid);
    } else {
      Wake(it->second, clock_.Now() + kWriteRetryPause);
    }
  };
  writes_.Submit(std::move(write));
}

// In the order in which they had something to say.
void JobController::SayUnsaid() {
  while (!unsaid_.empty() && writes_.Depth() < kCrowd) {
    const auto it = records_.find(unsaid_.front());
    unsaid_.pop_front();
    if (it == records_.end()) continue;
    it->second.unsaid = false;
    WriteStatus(it->second);
  }
}

std::vector<JobSample> JobController::Samples() const {
  std::vector<JobSample> out;
  for (const auto& [uid, record] : records_) {
    JobSample sample{&record.object, &record.status, std::nullopt};
    const bool ended = record.status.state() == "Completed" || record.status.state() == "Failed";
    if (ended && record.status.attempts_size() > 0) {
      const auto time = ParseTime(record.status.attempts().rbegin()->end_time());
      sample.ended = time ? *time : TimePoint{};
    }
    out.push_back(std::move(sample));
  }
  return out;
}

}  // namespace bimetal::op
