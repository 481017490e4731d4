#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/kubernetes.pb.h"
#include "core/base/ids.h"
#include "core/model/affinity.h"
#include "core/model/fleet.h"

// Pods that somebody else made and that wait in our queue: behind a scheduling gate until we have a
// place for them.
namespace bimetal::op {

// Of the pod, or of the template that it comes from: the GPUQueue in which it waits.
inline constexpr char kQueueNameLabel[] = "bimetal.dev/queue-name";
// Pods of one owner and one name start together or not at all, once so many are there.
inline constexpr char kPodGroupLabel[] = "bimetal.dev/pod-group";
inline constexpr char kPodGroupSizeAnnotation[] = "bimetal.dev/pod-group-size";
// "true": the group may be evicted for a job of higher priority.
inline constexpr char kPreemptibleAnnotation[] = "bimetal.dev/preemptible";
// Put on by an admission policy of the chart, taken off by the operator alone.
inline constexpr char kQueueGate[] = "bimetal.dev/queue";
// Ours, on a pod whose gate is off: the queue that pays for it. (Its node: kPinnedNodeAnnotation.)
inline constexpr char kAdmittedToAnnotation[] = "bimetal.dev/admitted-to";
// Ours, on a pod that waits: "REASON: what it means".
inline constexpr char kWaitingAnnotation[] = "bimetal.dev/waiting";

// What the queue needs to know of such a pod.
struct QueuedPod {
  std::string resource_version;
  std::string queue;        // by its label; empty where the label is gone
  std::string group;        // label; may be empty
  std::string group_size;   // annotation as it stands; may be empty
  std::string admitted_to;  // annotation; empty while it waits
  std::string waiting;      // annotation; empty where we have not said anything
  bool gated = false;       // our gate is on
  bool other_gates = false;
  bool preemptible = false;
  // Who made it: its controller, or nobody.
  std::string owner_api_version, owner_kind, owner_name, owner_uid;
  // Whose groups' names count as one's own: the JobSet above the owner, else the owner.
  std::string root_uid;
  int index = -1;  // in an Indexed Job; -1: none
  std::int64_t priority = 0;
  std::vector<core::Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  std::vector<core::NodeTerm> affinity;
};

// nullptr for a pod that has nothing to do with a queue, and for those that the operator made.
std::shared_ptr<const QueuedPod> ReadQueuedPod(const api::Pod& pod);

}  // namespace bimetal::op
