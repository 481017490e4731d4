#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/job.h"
#include "operator/state/store.h"

// Which pods of others start together, and whether they may ask the queue for a place. Pure.
namespace bimetal::op {

// The group of a pod: of those with the label bimetal.dev/pod-group all of one owner (a Job, or the
// JobSet above it) and one name; else, with an announced size over 1, all of one owner; else the
// pod alone. Owners count by uid: nobody joins another's group by its name. REQUIRES: pod.queued.
std::string PodGroupId(const PodRecord& pod);

// Why pods wait, beside what the queue itself says.
struct WaitReason {
  std::string reason;  // documented; empty: none
  std::string message;
  bool never = false;  // nothing but a change of the pods helps
};

// A group as it stands.
struct PodGroup {
  std::string id;
  // "Job train", "pod group ring of Job train", "pod single".
  std::string title;
  QueueName queue;
  int size = 1;
  // Keeps the whole group from the queue.
  WaitReason held;
  // Members that the group does without: of another queue or size, or more than were announced.
  std::vector<std::pair<ObjectKey, WaitReason>> strays;
  // Behind the gate and counted in, in the order of their index, then of their names.
  std::vector<ObjectKey> waiting;
  std::vector<ObjectKey> admitted;  // the gate is off, not ended, not being deleted
  // What the queue is asked for where nothing holds the group; nullopt where no pod that waits asks
  // for devices.
  std::optional<core::Job> wanted;
  // The pods of wanted->roles: [role][index].
  std::vector<std::vector<ObjectKey>> places;
  // Members that wait and ask for no device: they start with the others, on whatever node.
  std::vector<ObjectKey> anywhere;
};

// `members`: all pods of the group, ended ones included, at least one. A group starts when as many
// as announced are there; once part of it runs, what takes the place of a member that failed is
// placed as it comes.
PodGroup MakePodGroup(const std::vector<const PodRecord*>& members);

}  // namespace bimetal::op
