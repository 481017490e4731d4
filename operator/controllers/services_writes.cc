// The part of ServiceController that writes: deletions, the Service, and statuses.
#include <google/protobuf/util/message_differencer.h>

#include "core/base/log.h"
#include "operator/controllers/services.h"
#include "operator/controllers/status_write.h"
#include "operator/pods/service_pod.h"

namespace bimetal::op {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr Millis kStatusPause = Millis{500};    // between two writes of one status
constexpr Millis kMessagesPause = Seconds(60);  // where only messages have changed
constexpr Millis kWriteRetryPause = Seconds(1);
constexpr Millis kAddressRetryPause = Seconds(10);

api::GPUServiceStatus Essence(api::GPUServiceStatus status) {
  for (auto& condition : *status.mutable_conditions()) condition.clear_message();
  for (auto& variant : *status.mutable_variants()) variant.clear_message();
  return status;
}

// Makes the Service, or mends ours; somebody else's is left alone and said.
Status MakeAddress(kube::Client& client, const std::string& name_space, const std::string& name,
                   const std::string& body, const std::string& uid) {
  const auto created = client.CreateRaw(kube::InfoOf<api::Service>(), name_space, body);
  if (created) return {};
  if (created.error().code != ErrorCode::kAlreadyExists) {
    return tl::unexpected<Error>(created.error());
  }
  BIMETAL_TRY_ASSIGN(const auto existing, client.Get<api::Service>(name_space, name));
  const auto label = existing.metadata().labels().find(kServiceUidLabel);
  if (label == existing.metadata().labels().end() || label->second != uid) {
    return Fail(
        ErrorCode::kAlreadyExists,
        "there is a Service " + name_space + "/" + name +
            " that is not of this GPUService; delete it, or give the GPUService another name");
  }
  auto patched = client.Patch<api::Service>(name_space, name, body, kube::PatchType::kMerge);
  if (!patched) return tl::unexpected<Error>(patched.error());
  return {};
}

}  // namespace

void ServiceController::DeletePod(const PodRecord& pod, bool by_force) {
  if (pod.deleting && !by_force) return;
  if (!deleting_.insert({pod.holds.uid.value, by_force}).second) return;
  const ObjectKey key{pod.holds.name_space, pod.holds.name};
  Write write{"delete", "pods", key.first, key.second, "", {}, {}};
  kube::DeleteOptions options{.uid = pod.holds.uid.value, .grace_seconds = {}, .propagation = ""};
  // Nobody is left on a lost node to end the pod in peace.
  if (by_force) options.grace_seconds = 0;
  write.run = [key, options](kube::Client& client) -> Status {
    auto status = client.Delete<api::Pod>(key.first, key.second, options);
    if (!status && status.error().code == ErrorCode::kNotFound) return {};
    return status;
  };
  write.done = [this, key, by_force, pod_uid = pod.holds.uid.value,
                uid = pod.service](const Status& status) {
    if (status) return;
    deleting_.erase({pod_uid, by_force});  // so that it is asked for again
    Log(LogLevel::kWarning, "pod could not be deleted",
        {{"pod", key.first + "/" + key.second}, {"error", status.error().message}});
    touched_.insert(uid);
  };
  writes_.Submit(std::move(write));
}

void ServiceController::EnsureAddress(Record& record) {
  const std::int64_t generation = record.object.metadata().generation();
  if (record.address_retry && *record.address_retry <= clock_.Now()) {
    record.address_retry.reset();
    record.address_generation = -1;
  } else if (record.address_retry) {
    Wake(record, *record.address_retry);
  }
  if (record.address_in_flight || record.address_generation == generation ||
      !record.object.metadata().deletion_timestamp().empty()) {
    return;
  }
  record.address_in_flight = true;
  const std::string uid = record.object.metadata().uid();
  Write write{"create",
              "services",
              record.object.metadata().namespace_(),
              record.object.metadata().name(),
              BuildReplicaService(record.object),
              {},
              {}};
  write.run = [ns = write.name_space, name = write.name, body = write.body,
               uid](kube::Client& client) { return MakeAddress(client, ns, name, body, uid); };
  write.done = [this, uid, generation](const Status& status) {
    const auto it = records_.find(uid);
    if (it == records_.end()) return;
    it->second.address_in_flight = false;
    touched_.insert(uid);
    if (status) {
      it->second.address_generation = generation;
      it->second.address_error.clear();
      return;
    }
    it->second.address_error = status.error().message;
    it->second.address_generation = generation;  // until the pause is over
    it->second.address_retry = clock_.Now() + kAddressRetryPause;
  };
  writes_.Submit(std::move(write));
}

void ServiceController::WriteStatus(Record& record) {
  if (record.write_in_flight || MessageDifferencer::Equals(record.status, record.written)) return;
  const TimePoint now = clock_.Now();
  if (record.last_write) {
    const bool messages_alone =
        MessageDifferencer::Equals(Essence(record.status), Essence(record.written));
    const TimePoint due = *record.last_write + (messages_alone ? kMessagesPause : kStatusPause);
    if (now < due) {
      Wake(record, due);
      return;
    }
  }
  record.write_in_flight = true;
  record.last_write = now;
  api::GPUService target;
  *target.mutable_metadata() = record.object.metadata();
  *target.mutable_status() = record.status;
  const std::string uid = record.object.metadata().uid();
  Write write = StatusWrite(target);
  write.done = [this, uid, sent = record.status](const Status& result) {
    const auto it = records_.find(uid);
    if (it == records_.end()) return;
    if (SettleStatusWrite(it->second, sent, result, "service")) {
      touched_.insert(uid);
    } else {
      Wake(it->second, clock_.Now() + kWriteRetryPause);
    }
  };
  writes_.Submit(std::move(write));
}

}  // namespace bimetal::op
