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
  // Decides anew for every touched node and for those whose time has come.
  void Reconcile();
  // When Reconcile is due without an event.
  std::optional<TimePoint> NextWake() const;

  // The devices of a node as jobs may use them.
  std::map<core::Vendor, core::NodeDevices> DevicesOf(const std::string& node) const;
  bool OnHold(const std::string& node) const;
  // The model of the vendor's devices on a node, for prices; empty where unknown.
  std::string ModelOf(const std::string& node, core::Vendor vendor) const;
  // Phase of each GPU node, for metrics.
  std::map<std::string, std::string> Phases() const;

 private:
  struct PendingRun {
    std::string name, uid;  // uid is empty until the create has ended
    TimePoint created;
    std::string trouble;
  };
  struct VendorState {
    std::optional<core::admission::Report> report;
    api::Stack stack;
    core::admission::Memory memory;
    std::optional<core::admission::Decision> decision;
    std::optional<core::admission::Run> run;  // handed in, not judged yet
    std::string level;                        // of the run
    std::vector<api::Verdict> verdicts;       // of the last judged run, Pass left out
    std::optional<PendingRun> pending;        // created, not seen by the watch yet
    bool no_pool = false;
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
    std::optional<TimePoint> wake;
  };

  void Restore(const std::string& name, NodeState& state);
  api::ReportNodeReply ReplyTo(const api::ReportNodeRequest& request);
  // Has the node decided anew a little later: after a write that failed.
  void RetrySoon(const std::string& name);
  void TakeInventory(const api::ReportNodeRequest& request, NodeState& state);
  void TakeRuns(const api::ReportNodeRequest& request, NodeState& state);
  void DecideNode(const std::string& name);
  void DecideVendor(const std::string& name, NodeState& state, core::Vendor vendor);
  core::admission::Policy PolicyFor(const core::Pool* pool) const;
  std::optional<core::admission::RunPod> FindRunPod(const std::string& node, core::Vendor vendor,
                                                    VendorState& state);
  void StartRun(const std::string& node, core::Vendor vendor, NodeState& state,
                const core::Pool& pool);
  void DeletePod(const ObjectKey& key, const std::string& uid);
  api::GPUNodeStatus BuildStatus(const std::string& name, const NodeState& state) const;
  void WriteStatus(const std::string& name, NodeState& state);
  void CreateGpuNode(const std::string& name, NodeState& state);
  void PatchNode(const std::string& name, NodeState& state);
  void RecordEvent(const std::string& node, const api::GPUNodeStatus& status);
  std::string ImageFor(core::Vendor vendor) const;

  const Clock& clock_;
  Store& store_;
  WriteSink& writes_;
  NodeOptions options_;
  std::function<void()> changed_;
  std::optional<TimePoint> started_;
  std::map<std::string, NodeState> states_;
  std::set<std::string> touched_;
  std::set<std::string> deleting_;  // uids of validation pods whose deletion was asked for
  std::vector<core::Pool> pools_;   // of the reconcile under way
};

}  // namespace bimetal::op
