#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/fleet.pb.h"
#include "api/gpujob.pb.h"
#include "api/gpunode.pb.h"
#include "api/kubernetes.pb.h"
#include "core/model/fleet.h"
#include "operator/state/queued_pod.h"

// What the watches have delivered, cut down to what decisions need.
namespace bimetal::op {

// Labels and annotations that the operator puts on what it makes. The labels of job pods may be
// written by nobody else (an admission policy of the chart).
inline constexpr char kJobUidLabel[] = "bimetal.dev/job-uid";
inline constexpr char kJobNameLabel[] = "bimetal.dev/job";
inline constexpr char kAttemptLabel[] = "bimetal.dev/attempt";
inline constexpr char kRoleLabel[] = "bimetal.dev/role";
inline constexpr char kIndexLabel[] = "bimetal.dev/index";
inline constexpr char kVariantLabel[] = "bimetal.dev/variant";
// Of the replicas of a GPUService, beside kIndexLabel and kVariantLabel.
inline constexpr char kServiceUidLabel[] = "bimetal.dev/service-uid";
inline constexpr char kServiceNameLabel[] = "bimetal.dev/service";
inline constexpr char kRevisionLabel[] = "bimetal.dev/revision";
inline constexpr char kPinnedNodeAnnotation[] = "bimetal.dev/node";
// Pods of each role of the attempt, in the order of the roles: "1,7".
inline constexpr char kGangAnnotation[] = "bimetal.dev/gang";
inline constexpr char kValidatesLabel[] = "bimetal.dev/validates";  // vendor
// On a Node: kCapabilityLabelPrefix + "fp8-ocp" = "validated".
inline constexpr char kCapabilityLabelPrefix[] = "precision.bimetal.dev/";
inline constexpr char kRunLabel[] = "bimetal.dev/run";                  // kernels | path
inline constexpr char kRunDevicesAnnotation[] = "bimetal.dev/devices";  // ids, by commas
// On a GPUNode: works as spec.revalidate does.
inline constexpr char kRevalidateAnnotation[] = "bimetal.dev/revalidate";

using ObjectKey = std::pair<std::string, std::string>;  // namespace, name

// A pod, ended ones included: what it holds and how far its life has come.
struct PodRecord {
  core::Pod holds;
  std::map<std::string, std::int64_t> extended;  // every other resource asked for, whole units
  std::string job, variant, validates;           // labels; empty where absent
  std::vector<std::int64_t> gang;                // of a job's pod: pods of each role; may be empty
  std::string run;                               // of a validation pod: its kind
  std::string service, revision;                 // of a replica: its GPUService's uid; labels
  std::set<std::string> run_devices;             // and the devices it was made for
  bool ended = false;                            // Succeeded or Failed: holds nothing any more
  bool succeeded = false;
  bool deleting = false;
  bool ready = false;
  bool running = false;
  bool creating = false;  // a container has no image, volume or sandbox yet
  bool bound = false;     // spec.nodeName is set
  TimePoint created;
  std::optional<TimePoint> scheduled_at;        // PodScheduled became True (whole seconds)
  std::optional<TimePoint> finished_at;         // the last container ended (whole seconds)
  std::string waiting_reason, waiting_message;  // of a container that waits, or Unschedulable
  std::string end_reason, end_message;          // why it failed
  int exit_code = 0;
  bool disrupted = false;  // it failed by no fault of its program: evicted, node shut down
  std::shared_ptr<const QueuedPod> queued;  // of a pod of others that waits or waited in a queue

  bool Unschedulable() const { return waiting_reason == "Unschedulable"; }
};

// The uid of a replica as an entry of a queue: "SERVICE-UID/INDEX".
Uid ReplicaUid(const std::string& service_uid, int index);

// Counts the pod's devices anew, after the resource names of the pools have changed.
void CountDevices(PodRecord& pod, const std::map<std::string, core::Vendor>& resources);

// Cuts an API pod down. Resource names of other vendors' devices come from `resources`.
PodRecord MakePodRecord(const api::Pod& pod, const std::map<std::string, core::Vendor>& resources);

// A Node without its devices: labels, taints, readiness, allocatable.
struct NodeRecord {
  std::string uid, resource_version;
  core::Node node;                              // devices are filled in from admission
  std::map<std::string, std::int64_t> offered;  // extended resources: whole units allocatable
  std::vector<api::Taint> taints;               // whole, to be written back
  std::string boot_id, kernel_version;
  std::optional<TimePoint> not_ready_since;  // condition Ready, where it is not True
};

NodeRecord MakeNodeRecord(const api::Node& node);
// Equal apart from heartbeats, which the kubelet writes each few minutes or seconds.
bool SameForDecisions(const NodeRecord& a, const NodeRecord& b);

// Loop thread only.
struct Store {
  std::map<std::string, NodeRecord> nodes;
  std::map<ObjectKey, PodRecord> pods;
  std::map<std::string, std::set<ObjectKey>> pods_by_job;   // job uid -> its pods
  std::map<std::string, std::set<ObjectKey>> pods_by_service;  // service uid -> its replicas
  std::map<std::string, std::set<ObjectKey>> runs_by_node;  // node -> its validation pods
  std::map<std::string, api::GPUNode> gpu_nodes;
  std::map<std::string, api::GPUPool> pools;
  std::map<std::string, api::GPUQueue> queues;
  std::map<std::string, api::ValidationProfile> profiles;
  std::map<std::string, api::PriceBook> price_books;
  std::map<std::string, std::map<std::string, std::string>> namespaces;  // labels
  std::map<std::string, std::int64_t> priorities;                        // of PriorityClasses

  // Keep pods and what finds them in step.
  void PutPod(PodRecord pod);
  void RemovePod(const ObjectKey& key);

  // Resource name -> vendor, from the pools and the vendors' defaults.
  std::map<std::string, core::Vendor> resources = DefaultResources();
  static std::map<std::string, core::Vendor> DefaultResources();
};

// Checked pools in the order of their names; a pool with an unknown vendor is left out.
std::vector<core::Pool> PoolsOf(const Store& store);
std::vector<core::Queue> QueuesOf(const Store& store);
// The first pool by name that selects a node with these labels for this vendor; nullptr where none.
const core::Pool* PoolFor(const std::vector<core::Pool>& pools, core::Vendor vendor,
                          const std::map<std::string, std::string>& node_labels);

}  // namespace bimetal::op
