#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/agent.pb.h"
#include "api/gpunode.pb.h"
#include "core/admission/decide.h"
#include "core/validation/judge.h"
#include "operator/controllers/node_breakers.h"
#include "operator/state/store.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

struct NodeOptions {
  std::string name_space;  // of validation pods
  std::string service_account, nvidia_image, amd_image, pull_policy, priority_class;
  std::string socket_dir = "/run/bimetal";
  std::string machine_dir;  // empty unless simulation is on
  std::vector<core::Toleration> tolerations;
  Millis stale_after = Seconds(30);
  // Told of every run that was judged: "pass", "fail" or "inconclusive". May be empty.
  std::function<void(const std::string& level, core::Vendor, std::string_view result)> judged;
};

// Keeps GPUNodes: takes the agents' reports, has nodes validated, and shuts or opens them (both
// locks of docs/explanation/architecture.md). Decisions are admission::Decide's; here they are
// carried out. Loop thread only.
class NodeController {
 public:
  // `changed` is called when what jobs may use has changed.
  NodeController(const Clock& clock, Store& store, WriteSink& writes, NodeOptions options,
                 std::function<void()> changed);

  // From now on decisions are made: the watches have synced and we lead.
  void Start();

  // A checked report. The reply holds the orders that follow from it.
  api::ReportNodeReply OnReport(const api::ReportNodeRequest& request);

  // Something about this node changed: its Node, GPUNode, pods.
  void Touch(const std::string& node) { touched_.insert(node); }
  void TouchAll();
  // Decides anew for every touched node and for those whose time or turn has come.
  void Reconcile();
  // When Reconcile is due without an event.
  std::optional<TimePoint> NextWake() const;

  // The devices of a node as jobs may use them.
  std::map<core::Vendor, core::NodeDevices> DevicesOf(const std::string& node) const;
  bool OnHold(const std::string& node) const;
  // The vendors, sorted, of which a node that was open before our start is ready and not heard yet.
  // Soon after the start they are heard, or their silence is held against them.
  std::vector<core::Vendor> Settling() const;
  // Jobs of several owners failed on the node: the vendor's devices there take no new work until
  // they pass again. `event` tells one such time from another; the same again is no news.
  void Suspect(const std::string& node, core::Vendor vendor, const std::string& event,
               const std::string& evidence);
  // The finding that closed a device while this pod held it: "device X: ..."; empty: none known.
  std::string FaultUnder(const Uid& pod) const;
  // The model of the vendor's devices on a node, for prices; empty where unknown.
  std::string ModelOf(const std::string& node, core::Vendor vendor) const;
  // Phase of each GPU node, for metrics.
  std::map<std::string, std::string> Phases() const;
  // What is found wrong on each node now, for metrics.
  std::map<std::string, std::vector<api::FindingStatus>> Findings() const;
  // The breakers of a pool, by its name: what is open and the way back; empty where none is.
  std::string BreakerText(const std::string& pool) const;

 private:
  struct PendingRun {
    std::string name, uid;  // uid is empty until the create has ended
    TimePoint created;
    std::string trouble;
    core::admission::RunKind kind = core::admission::RunKind::kKernels;
    std::set<DeviceId> devices;
  };
  struct VendorState {
    std::optional<core::admission::Report> report;
    api::Stack stack;
    core::admission::Memory memory;
    std::optional<core::admission::Decision> decision;
    std::optional<core::admission::Run> run;   // handed in, not judged yet
    std::vector<api::VerdictStatus> verdicts;  // of the last run of the kernels, Pass left out
    std::vector<api::RateStatus> rates;
    std::vector<core::validation::NodeRate> node_rates;
    std::optional<PendingRun> pending;  // created, not seen by the watch yet
    bool no_pool = false;
    std::string pool;                                 // in whose breakers it counts
    std::optional<core::admission::Fault> suspicion;  // of jobs that failed, not decided on yet
  };
  struct NodeState {
    bool restored = false;
    api::Inventory inventory;
    std::string boot_id;
    std::int64_t seq = 0;
    std::deque<std::string> old_boots;
    std::optional<TimePoint> last_report;
    std::map<core::Vendor, VendorState> vendors;
    std::set<std::string> unacknowledged;  // runs handed in, decision not stored yet
    api::GPUNodeStatus written;
    bool write_in_flight = false;  // of the GPUNode
    bool patch_in_flight = false;  // of the Node
    std::string last_phase;
    std::set<std::string> told;  // findings of which an Event was sent
    // Of closed devices: the Events that were sent to those who hold them, by name.
    std::map<DeviceId, std::set<std::string>> told_holders;
    std::optional<TimePoint> wake;
  };

  // nodes_reports.cc
  void Restore(const std::string& name, NodeState& state);
  api::ReportNodeReply ReplyTo(const api::ReportNodeRequest& request);
  void TakeInventory(const api::ReportNodeRequest& request, NodeState& state);
  void TakeRuns(const api::ReportNodeRequest& request, NodeState& state);
  void TakeRun(const std::string& node, const api::ValidationRun& run, core::Vendor vendor,
               NodeState& state);
  const core::validation::FleetMedians& Medians();
  // Also fills pools_.
  const core::Pool* PoolOf(const std::string& node, core::Vendor vendor) const;
  const api::ValidationProfileSpec* ProfileOf(const core::Pool* pool) const;

  // nodes.cc
  void DecideNode(const std::string& name);
  void DecideVendor(const std::string& name, NodeState& state, core::Vendor vendor);
  core::admission::Facts FactsOf(const std::string& name, VendorState& state, core::Vendor vendor);
  void AskBreakers(const core::Pool* pool, core::admission::Facts& facts) const;
  void NoteStanding(const std::string& name, VendorState& state, const core::Pool* pool,
                    bool running);
  // Before a node is heard: as its status says.
  void NoteOldStanding(const std::string& name, const NodeState& state, core::Vendor vendor,
                       VendorState& vendor_state);
  // Those that wait for a slot or a breaker, where there is news for them.
  void DecideWaiting();
  // Has the node decided anew a little later: after a write that failed.
  void RetrySoon(const std::string& name);

  // nodes_runs.cc
  std::optional<core::admission::RunPod> FindRunPod(const std::string& node, core::Vendor vendor,
                                                    VendorState& state);
  void StartRun(const std::string& node, core::Vendor vendor, NodeState& state,
                const core::Pool& pool);
  void CreateRunPod(const std::string& node, core::Vendor vendor, const std::string& name_space,
                    const std::string& pod_name, const std::string& body);
  void DeletePod(const ObjectKey& key, const std::string& uid);
  void EndRun(const std::string& node, const std::string& uid);
  std::string ImageFor(core::Vendor vendor) const;

  // nodes_writes.cc
  api::GPUNodeStatus BuildStatus(const std::string& name, const NodeState& state) const;
  void WriteStatus(const std::string& name, NodeState& state);
  void CreateGpuNode(const std::string& name, NodeState& state);
  void PatchNode(const std::string& name, NodeState& state);
  void TellFindings(const std::string& name, NodeState& state);
  void SendEvent(const api::Event& event);

  // nodes_holders.cc
  void TellHolders(const std::string& name, NodeState& state);
  void TellHolder(const std::string& name, NodeState& state, const VendorState& vendor_state,
                  const api::Device& device);
  void NoteFault(const Uid& pod, const std::string& fault);

  const Clock& clock_;
  Store& store_;
  WriteSink& writes_;
  NodeOptions options_;
  std::function<void()> changed_;
  std::optional<TimePoint> started_;
  std::map<std::string, NodeState> states_;
  std::set<std::string> touched_;
  std::set<std::string> deleting_;  // uids of validation pods whose deletion was asked for
  std::vector<core::Pool> pools_;   // of the decision under way
  NodeBreakers breakers_;
  std::deque<std::pair<Uid, std::string>> faulted_;  // pods over closed devices, newest last
  const core::validation::FloorTable floors_ = core::validation::FloorTable::BuiltIn();
  core::validation::FleetMedians medians_;
  std::optional<TimePoint> medians_at_;
};

// The GPUNode of this name; nullptr where the watch has not shown one.
const api::GPUNode* FindGpuNode(const Store& store, const std::string& name);

}  // namespace bimetal::op
