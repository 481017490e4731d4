#include "tests/bench/loop/stand_in.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "kube/codec/codec.h"
#include "operator/state/store.h"

namespace bimetal::bench {
namespace {

std::string KeyOf(const std::string& name_space, const std::string& name) {
  return name_space + "/" + name;
}

api::PodCondition* ConditionOf(api::Pod* pod, const std::string& type) {
  for (auto& condition : *pod->mutable_status()->mutable_conditions()) {
    if (condition.type() == type) return &condition;
  }
  auto* made = pod->mutable_status()->add_conditions();
  made->set_type(type);
  return made;
}

}  // namespace

void Future::AdvanceTo(Micros when) {
  if (when <= now_) return;
  clock_.Advance(Millis{when / 1000 - now_ / 1000});
  now_ = when;
}

void Future::RunDue() {
  while (!events_.empty() && events_.begin()->first <= now_) {
    const auto what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    what();
  }
}

void StandIn::Serve(const std::string& what, Micros cost, std::function<void()> done) {
  ++requests_[what];
  busy_ += cost;
  free_at_ = std::max(free_at_, future_.now()) + cost;
  future_.At(free_at_, std::move(done));
}

void StandIn::CreateJob(api::GPUJob job) {
  Serve("create gpujobs", options_.costs.create, [this, job = std::move(job)]() mutable {
    auto& kept = jobs_[KeyOf(job.metadata().namespace_(), job.metadata().name())];
    kept = std::move(job);
    watches_.job(kept, false);
  });
}

Micros StandIn::CostOf(const op::Write& write) const {
  if (write.verb == "create") {
    return write.resource == "pods" ? options_.costs.create_pod : options_.costs.create;
  }
  return write.verb == "delete" ? options_.costs.remove : options_.costs.patch;
}

void StandIn::Submit(op::Write write) {
  // The lives of nodes are not played: what is written of them is never answered, so that it is
  // written once.
  if (write.resource.starts_with("nodes") || write.resource.starts_with("gpunodes")) return;
  waiting_.Push(std::move(write));
  StartWrites();
}

void StandIn::StartWrites() {
  while (in_flight_ < options_.writers && !waiting_.empty()) {
    ++in_flight_;
    op::Write write = waiting_.Pop();
    const std::string what = write.verb + " " + write.resource;
    const Micros cost = CostOf(write);
    Serve(what, cost, [this, write = std::move(write)] {
      --in_flight_;
      CarryOut(write);
      if (write.done) watches_.ended([done = write.done] { done({}); });
      StartWrites();
    });
  }
}

void StandIn::CarryOut(const op::Write& write) {
  const std::string key = KeyOf(write.name_space, write.name);
  if (write.verb == "create" && write.resource == "pods") {
    api::Pod& pod = pods_[key];
    if (!kube::FromJson(write.body, &pod)) {
      std::fprintf(stderr, "not a pod: %s\n", write.body.c_str());
      std::abort();
    }
    pod.mutable_metadata()->set_namespace_(write.name_space);
    pod.mutable_metadata()->set_creation_timestamp(FormatTime(future_.Time()));
    pod.mutable_metadata()->set_uid("pod-" + std::to_string(++made_));
    SetPhase(key, "Pending");
    if (options_.pods_write) {
      Serve("bind pods", options_.costs.bind, [this, key] {
        const auto it = pods_.find(key);
        if (it == pods_.end()) return;
        ConditionOf(&it->second, "PodScheduled")->set_status("True");
        SetPhase(key, "Pending");
        Serve("patch pods/status", options_.costs.patch, [this, key] { StartPod(key); });
      });
    } else {
      StartPod(key);
    }
  } else if (write.verb == "delete" && write.resource == "pods") {
    const auto it = pods_.find(key);
    if (it == pods_.end()) return;
    const api::Pod gone = std::move(it->second);
    pods_.erase(it);
    watches_.pod(gone, true);
  } else if (write.resource == "gpujobs/status") {
    const auto it = jobs_.find(key);
    if (it == jobs_.end()) return;
    it->second.clear_status();
    if (kube::FromJson(write.body, it->second.mutable_status())) watches_.job(it->second, false);
  } else if (write.verb == "delete" && write.resource == "gpujobs") {
    const auto it = jobs_.find(key);
    if (it == jobs_.end()) return;
    const api::GPUJob gone = std::move(it->second);
    jobs_.erase(it);
    watches_.job(gone, true);
  }
}

// The watch shows the pod in this phase from now on.
void StandIn::SetPhase(const std::string& key, const std::string& phase) {
  const auto it = pods_.find(key);
  if (it == pods_.end()) return;
  it->second.mutable_status()->set_phase(phase);
  watches_.pod(it->second, false);
}

void StandIn::StartPod(const std::string& key) {
  const auto it = pods_.find(key);
  if (it == pods_.end()) return;
  api::Pod& pod = it->second;
  pod.mutable_spec()->set_node_name(pod.metadata().annotations().at(op::kPinnedNodeAnnotation));
  ConditionOf(&pod, "PodScheduled")->set_status("True");
  ConditionOf(&pod, "Ready")->set_status("True");
  auto* container = pod.mutable_status()->add_container_statuses();
  container->set_ready(true);
  container->mutable_state()->mutable_running();
  SetPhase(key, "Running");
  const Micros run_time = watches_.run_time(pod.metadata().labels().at(op::kJobUidLabel));
  const std::string uid = pod.metadata().uid();
  future_.At(future_.now() + run_time, [this, key, uid] {
    const auto still = pods_.find(key);
    if (still == pods_.end() || still->second.metadata().uid() != uid) return;
    if (options_.pods_write) {
      Serve("patch pods/status", options_.costs.patch, [this, key] { FinishPod(key); });
    } else {
      FinishPod(key);
    }
  });
}

void StandIn::FinishPod(const std::string& key) {
  const auto it = pods_.find(key);
  if (it == pods_.end()) return;
  ConditionOf(&it->second, "Ready")->set_status("False");
  SetPhase(key, "Succeeded");
}

}  // namespace bimetal::bench
