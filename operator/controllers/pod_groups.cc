#include "operator/controllers/pod_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>

#include "core/placement/shape.h"

namespace bimetal::op {
namespace {

ObjectKey KeyOf(const PodRecord& pod) { return {pod.holds.name_space, pod.holds.name}; }

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

// nullopt where the annotation cannot be read. 1 where it is left out.
std::optional<int> SizeOf(const QueuedPod& pod) {
  if (pod.group_size.empty()) return 1;
  int size = 0;
  const char* end = pod.group_size.data() + pod.group_size.size();
  const auto [at, error] = std::from_chars(pod.group_size.data(), end, size);
  const bool good = error == std::errc{} && at == end && size >= 1 && size <= core::kMaxPodsOfJob;
  return good ? std::optional(size) : std::nullopt;
}

std::string TitleOf(const PodRecord& pod, bool grouped) {
  const QueuedPod& queued = *pod.queued;
  const std::string owner = queued.owner_uid.empty() ? "pod " + pod.holds.name
                                                     : queued.owner_kind + " " + queued.owner_name;
  if (queued.group.empty()) return grouped ? owner : "pod " + pod.holds.name;
  return "pod group " + queued.group + (queued.owner_uid.empty() ? "" : " of " + owner);
}

WaitReason Misconfigured(std::string message) {
  return {"Misconfigured", std::move(message), true};
}

// What is wrong with one pod, whatever its group is.
WaitReason TroubleOf(const PodRecord& pod) {
  const QueuedPod& queued = *pod.queued;
  if (queued.queue.empty()) {
    return {"QueueNotNamed",
            std::string("the pod waits behind the gate ") + kQueueGate +
                " and names no queue; put the label " + kQueueNameLabel +
                " back, or delete the pod and have it made again",
            true};
  }
  const auto size = SizeOf(queued);
  if (!size) {
    return Misconfigured(std::string("annotation ") + kPodGroupSizeAnnotation + ": " +
                         Quoted(queued.group_size) + " is not a number from 1 to " +
                         std::to_string(core::kMaxPodsOfJob) +
                         "; correct it in the pod's template");
  }
  if (!queued.group.empty() && queued.group_size.empty()) {
    return Misconfigured(std::string("label ") + kPodGroupLabel + " without the annotation " +
                         kPodGroupSizeAnnotation +
                         "; say in the pod's template how many pods the group has");
  }
  if (queued.group.empty() && *size > 1 && queued.owner_uid.empty()) {
    return Misconfigured(std::string("annotation ") + kPodGroupSizeAnnotation +
                         " on a pod that nobody owns; name its group by the label " +
                         kPodGroupLabel);
  }
  if (pod.holds.devices.size() > 1) {
    return Misconfigured(
        "the pod asks for devices of both vendors; no pool holds both. Ask for one of them, or "
        "submit a GPUJob with a variant for each");
  }
  if (queued.other_gates) {
    return {"OtherSchedulingGates",
            "other scheduling gates of the pod are still on; it is placed when they are off",
            false};
  }
  return {};
}

std::int64_t DevicesOf(const PodRecord& pod) {
  std::int64_t devices = 0;
  for (const auto& [vendor, held] : pod.holds.devices) devices += held.v / kWholeDevice.v;
  return devices;
}

// Where the group's words and numbers come from: a member that runs, else the oldest.
bool Before(const PodRecord* a, const PodRecord* b) {
  return std::tuple(a->queued->gated, a->created, a->holds.uid) <
         std::tuple(b->queued->gated, b->created, b->holds.uid);
}

bool InOrder(const PodRecord* a, const PodRecord* b) {
  const auto rank = [](const PodRecord* pod) {
    return std::tuple(pod->queued->index, pod->holds.name.size(),
                      std::string_view(pod->holds.name));
  };
  return rank(a) < rank(b);
}

// The queue that a member belongs to: where it pays, once it has been admitted.
const std::string& QueueOf(const PodRecord& pod) {
  return pod.queued->admitted_to.empty() ? pod.queued->queue : pod.queued->admitted_to;
}

WaitReason MismatchOf(const PodRecord& pod, const PodRecord& lead, const PodGroup& group) {
  if (pod.queued->queue != group.queue.value) {
    return {"PodGroupMismatch",
            "the pod names queue " + pod.queued->queue + ", but its group, by pod " +
                lead.holds.name + ", is of queue " + group.queue.value +
                "; pods of one group share one queue",
            true};
  }
  if (SizeOf(*pod.queued) != group.size) {
    return {"PodGroupMismatch",
            "the pod announces a group of " + pod.queued->group_size + ", but its group, by pod " +
                lead.holds.name + ", has " + std::to_string(group.size) +
                "; pods of one group share one size",
            true};
  }
  return {};
}

// Waiting pods by shape: one role each.
void AddRoles(const std::vector<const PodRecord*>& pods, PodGroup* group) {
  std::map<std::string, std::size_t> roles;
  core::Job& job = *group->wanted;
  for (const PodRecord* pod : pods) {
    core::Role role;
    role.requests = pod->holds.requests;
    role.tolerations = pod->queued->tolerations;
    role.node_selector = pod->queued->node_selector;
    role.node_affinity = pod->queued->affinity;
    const std::string shape = std::to_string(role.requests.cpu_milli) + "/" +
                              std::to_string(role.requests.memory_bytes) + "/" +
                              core::placement::ShapeOfConstraints(role);
    const auto [at, fresh] = roles.emplace(shape, job.roles.size());
    if (fresh) {
      role.name = "pods-" + std::to_string(at->second);
      role.replicas = 0;
      job.roles.push_back(std::move(role));
      group->places.emplace_back();
    }
    ++job.roles[at->second].replicas;
    group->places[at->second].push_back(KeyOf(*pod));
  }
}

// What the queue is asked for by those that wait.
void AddWish(const std::vector<const PodRecord*>& waiting, PodGroup* group) {
  std::vector<const PodRecord*> with_devices;
  for (const PodRecord* pod : waiting) {
    if (DevicesOf(*pod) > 0)
      with_devices.push_back(pod);
    else
      group->anywhere.push_back(KeyOf(*pod));
  }
  if (with_devices.empty()) return;
  const PodRecord& first = *with_devices.front();
  for (const PodRecord* pod : with_devices) {
    if (pod->holds.devices == first.holds.devices) continue;
    group->held = Misconfigured("pods " + first.holds.name + " and " + pod->holds.name +
                                " of one group ask for different devices; each pod of a group asks "
                                "for as many of one vendor as the others, or for none");
    return;
  }
  core::Job job;
  job.uid = Uid{group->id};
  job.name_space = first.holds.name_space;
  job.name = group->title;
  job.queue = group->queue;
  job.priority = first.queued->priority;
  job.created = first.created;
  for (const PodRecord* pod : with_devices) job.created = std::min(job.created, pod->created);
  core::Variant variant;
  variant.vendor = first.holds.devices.begin()->first;
  variant.name = std::string(core::VendorName(variant.vendor));
  variant.devices_per_pod = DevicesOf(first);
  job.variants.push_back(std::move(variant));
  job.preemption = std::all_of(with_devices.begin(), with_devices.end(),
                               [](const PodRecord* pod) { return pod->queued->preemptible; })
                       ? core::Preemption::kAllowed
                       : core::Preemption::kNever;
  group->wanted = std::move(job);
  AddRoles(with_devices, group);
}

}  // namespace

std::string PodGroupId(const PodRecord& pod) {
  const QueuedPod& queued = *pod.queued;
  const std::string begin = "pods/" + pod.holds.name_space + "/";
  if (!queued.group.empty()) return begin + queued.root_uid + "/" + queued.group;
  // An unreadable size is told on each pod by itself.
  if (SizeOf(queued).value_or(1) > 1 && !queued.owner_uid.empty()) return begin + queued.owner_uid;
  return begin + pod.holds.uid.value;
}

PodGroup MakePodGroup(const std::vector<const PodRecord*>& members) {
  PodGroup group;
  std::vector<const PodRecord*> live, waiting;
  int succeeded = 0;
  for (const PodRecord* pod : members) {
    succeeded += pod->succeeded ? 1 : 0;
    if (!pod->ended && !pod->deleting) live.push_back(pod);
  }
  group.id = PodGroupId(*members.front());
  group.title = TitleOf(*members.front(), members.size() > 1);
  if (live.empty()) return group;
  std::sort(live.begin(), live.end(), Before);
  std::vector<std::pair<const PodRecord*, WaitReason>> troubled;
  const PodRecord* lead = nullptr;
  for (const PodRecord* pod : live) {
    if (!pod->queued->gated) {
      group.admitted.push_back(KeyOf(*pod));
    } else if (WaitReason trouble = TroubleOf(*pod); !trouble.reason.empty()) {
      troubled.emplace_back(pod, std::move(trouble));
      continue;
    }
    if (lead == nullptr) lead = pod;
  }
  if (lead != nullptr) {
    group.queue = QueueName{QueueOf(*lead)};
    group.size = SizeOf(*lead->queued).value_or(1);
    const bool grouped = group.size > 1 || !lead->queued->group.empty();
    group.title = TitleOf(*lead, grouped);
  }
  for (const auto& [pod, trouble] : troubled) group.strays.emplace_back(KeyOf(*pod), trouble);
  const int there = static_cast<int>(group.admitted.size()) + succeeded;
  for (const PodRecord* pod : live) {
    if (!pod->queued->gated || !TroubleOf(*pod).reason.empty()) continue;
    if (WaitReason mismatch = MismatchOf(*pod, *lead, group); !mismatch.reason.empty()) {
      group.strays.emplace_back(KeyOf(*pod), std::move(mismatch));
    } else if (there + static_cast<int>(waiting.size()) >= group.size) {
      group.strays.emplace_back(
          KeyOf(*pod),
          WaitReason{"PodGroupTooLarge",
                     group.title + " announces " + std::to_string(group.size) +
                         " pods and so many are there; the pod is one too many. Delete "
                         "it, or announce more in the pods' template",
                     true});
    } else {
      waiting.push_back(pod);
    }
  }
  std::sort(waiting.begin(), waiting.end(), InOrder);
  for (const PodRecord* pod : waiting) group.waiting.push_back(KeyOf(*pod));
  if (waiting.empty()) return group;
  const int present = there + static_cast<int>(waiting.size());
  if (group.admitted.empty() && present < group.size) {
    group.held = {"PodGroupIncomplete",
                  group.title + " announces " + std::to_string(group.size) + " pods, " +
                      std::to_string(present) +
                      " are there; it is placed as a whole when the others are, too",
                  false};
    return group;
  }
  AddWish(waiting, &group);
  return group;
}

}  // namespace bimetal::op
