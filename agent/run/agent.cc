#include "agent/run/agent.h"

#include <google/protobuf/util/message_differencer.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "agent/diagnosis/rules.h"
#include "agent/inventory/clean_text.h"
#include "agent/inventory/to_api.h"
#include "agent/kubelet/pod_resources.h"
#include "agent/report/report_client.h"
#include "agent/run/boot_id.h"
#include "agent/run/enumerator.h"
#include "agent/run/loop.h"
#include "agent/run/plugins.h"
#include "agent/state/node_state.h"
#include "agent/state/state_file.h"
#include "agent/verdicts/verdict_server.h"
#include "core/base/log.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kQueue = 256;
constexpr Millis kEnumeratorPatience = Seconds(1);
constexpr std::chrono::seconds kAcceptPatience{5};
constexpr Millis kPodUseDeadline = Seconds(1);

api::Finding MakeFinding(const std::string& code, const std::string& severity,
                         const std::string& evidence, const std::string& remedy) {
  api::Finding out;
  out.set_code(code);
  out.set_severity(severity);
  out.set_evidence(CleanText(evidence, 1024));
  out.set_remedy(remedy);
  out.set_effect(std::string(EffectName(Effect::kNone)));
  if (const Rule* rule = FindRule(code)) out.set_documentation(rule->documentation);
  return out;
}

FindingCounts CountsOf(const api::Inventory& inventory) {
  FindingCounts counts;
  for (const api::Finding& finding : inventory.findings()) {
    ++counts[{finding.code(), finding.severity(), finding.vendor()}];
  }
  return counts;
}

// Which devices pods hold, and which pods, by what the kubelet last said.
void SetInUse(const Inventory& inventory, const Result<PodUse>& use, api::Inventory& out) {
  for (int i = 0; i < out.devices_size(); ++i) {
    api::Device& device = *out.mutable_devices(i);
    const Device& seen = inventory.devices[static_cast<std::size_t>(i)];
    const auto in_use = use ? IsInUse(*use, seen) : std::optional<bool>();
    if (use) device.set_holder(HolderOf(*use, seen));
    if (in_use) {
      device.set_in_use(*in_use);
    } else {
      (*device.mutable_unread())["in_use"] =
          "unknown: " + (use ? "a pod holds a device under a name that is not ours"
                             : CleanText(use.error().message, 256));
    }
  }
}

// An idle GPU lowers the speed of its link: a change of it alone is no news.
bool IsNews(const api::ReportNodeRequest& before, api::ReportNodeRequest now) {
  for (int i = 0; i < now.inventory().devices_size() && i < before.inventory().devices_size();
       ++i) {
    const api::Device& old = before.inventory().devices(i);
    api::Device& device = *now.mutable_inventory()->mutable_devices(i);
    if (!old.has_link_generation() || !device.has_link_generation()) continue;
    device.set_link_generation(old.link_generation());
  }
  return !google::protobuf::util::MessageDifferencer::Equals(before, now);
}

SavedState LoadOrNothing(const StateFile& file, std::map<std::string, api::Finding>& findings) {
  auto loaded = file.Load();
  if (loaded) return std::move(*loaded);
  if (loaded.error().code != ErrorCode::kNotFound) {
    Log(LogLevel::kError, "saved state ignored, every device is shut",
        {{"reason", loaded.error().message}});
    file.SetAside();
    findings["StateFileUnreadable"] = MakeFinding(
        "StateFileUnreadable", "Warning", loaded.error().message,
        "nothing, the next answer of the operator replaces it; check the disk if it comes again");
  }
  return {};
}

}  // namespace

class Agent::Impl {
 public:
  Impl(AgentParts parts, const Clock& clock, AgentMetrics& metrics)
      : parts_(std::move(parts)),
        clock_(clock),
        metrics_(metrics),
        loop_(kQueue),
        file_(parts_.config.state_dir),
        state_(LoadOrNothing(file_, findings_)),
        plugins_(
            {parts_.config.device_plugin_dir, parts_.plugin_poll, parts_.plugin_stream_grace}) {}

  Status Open();
  bool Stop();

 private:
  // All below run in the loop thread.
  void TakeInventory(Inventory inventory, Result<PodUse> use, Millis took);
  void TakeReply(const api::ReportNodeReply& reply);
  Status TakeRun(const ReceivedRun& received, TimePoint began, TimePoint ended);
  void Tick();
  // Carries the present state out: plug-ins, report, metrics, what connections may hand in.
  void Refresh(bool at_once);
  void RefreshVendor(Vendor vendor);
  void CheckPlugins();
  void Save();
  void SetFinding(const std::string& code, std::optional<api::Finding> finding);
  api::ReportNodeRequest BuildRequest() const;

  // Called from connections' threads.
  Status HandOver(const ReceivedRun& received, TimePoint began, TimePoint ended);
  bool IsAcceptable(const std::string& run) const;

  const AgentParts parts_;
  const Clock& clock_;
  AgentMetrics& metrics_;
  Loop loop_;

  // Of the loop thread.
  std::map<std::string, api::Finding> findings_;  // the agent's own, by code
  const StateFile file_;
  NodeState state_;
  Plugins plugins_;
  std::optional<Inventory> inventory_;
  Result<PodUse> pod_use_;      // of the same look
  std::map<Vendor, int> open_;  // devices offered as Healthy, for the log
  bool hung_ = false;           // the look in progress is over its deadline
  bool unsaved_ = false;
  std::optional<api::ReportNodeRequest> submitted_;

  mutable std::mutex acceptable_mutex_;
  std::set<std::string> acceptable_;  // guarded by acceptable_mutex_

  std::unique_ptr<ReportClient> client_;
  std::unique_ptr<VerdictServer> verdicts_;
  std::unique_ptr<Enumerator> enumerator_;
  std::thread thread_;
  bool stopped_ = false;
  bool stopped_cleanly_ = true;
};

Status Agent::Impl::Open() {
  const AgentConfig& config = parts_.config;
  VerdictServerOptions verdicts;
  verdicts.path = config.socket;
  verdicts.order_wait = parts_.order_wait;
  VerdictHooks hooks;
  hooks.is_expected = [this](const std::string& run) { return IsAcceptable(run); };
  hooks.want_orders = [this] {
    loop_.Post([this] {
      if (submitted_) client_->Submit(*submitted_, true);
    });
  };
  hooks.accept = [this](const ReceivedRun& run, TimePoint began, TimePoint ended) {
    return HandOver(run, began, ended);
  };
  BIMETAL_TRY_ASSIGN(verdicts_,
                     VerdictServer::Start(std::move(verdicts), clock_, std::move(hooks)));

  ReportOptions report;
  report.address = config.operator_endpoint.address;
  report.tls_server_name = config.operator_endpoint.tls_server_name;
  report.ca_file = config.operator_endpoint.ca_file;
  report.token_file = config.operator_endpoint.token_file;
  report.interval = config.report_interval;
  client_ =
      std::make_unique<ReportClient>(std::move(report), clock_, [this](api::ReportNodeReply reply) {
        loop_.Post([this, reply = std::move(reply)] { TakeReply(reply); });
      });
  enumerator_ = std::make_unique<Enumerator>(
      parts_.read_inventory, config.enumerate_interval, clock_,
      [this](Inventory inventory, Millis took) {
        auto use = ReadPodUse(parts_.config.pod_resources_socket, kPodUseDeadline);
        loop_.Post([this, inventory = std::move(inventory), use = std::move(use), took]() mutable {
          TakeInventory(std::move(inventory), std::move(use), took);
        });
      });
  thread_ = std::thread([this] { loop_.Run(parts_.tick, [this] { Tick(); }); });
  return {};
}

bool Agent::Impl::Stop() {
  if (stopped_) return stopped_cleanly_;
  stopped_ = true;
  loop_.Stop();
  verdicts_.reset();
  if (enumerator_) stopped_cleanly_ = enumerator_->Stop(kEnumeratorPatience);
  if (thread_.joinable()) thread_.join();
  client_.reset();
  plugins_.Stop();
  return stopped_cleanly_;
}

void Agent::Impl::TakeInventory(Inventory inventory, Result<PodUse> use, Millis took) {
  metrics_.ObserveEnumeration(took);
  if (hung_) Log(LogLevel::kInfo, "the machine answers again", {{"took_ms", took.v}});
  hung_ = false;
  SetFinding("EnumerationHung", std::nullopt);
  const std::string boot_id =
      inventory.boot_id.known() ? CleanText(inventory.boot_id.value, 64) : ReadOwnBootId();
  if (boot_id.empty()) {
    SetFinding("BootIdUnreadable",
               MakeFinding("BootIdUnreadable", "Critical", inventory.boot_id.why,
                           "let the agent read /proc/sys/kernel/random/boot_id"));
  } else {
    SetFinding("BootIdUnreadable", std::nullopt);
  }
  if (state_.Observe(boot_id, FingerprintsOf(inventory))) Save();
  inventory_ = std::move(inventory);
  pod_use_ = std::move(use);
  Refresh(true);
}

void Agent::Impl::TakeReply(const api::ReportNodeReply& reply) {
  if (state_.Apply(reply, clock_.Now())) {
    Save();
    Log(LogLevel::kInfo, "orders changed", {{"orders", state_.saved().orders_size()}});
  }
  SetFinding("StateFileUnreadable", std::nullopt);  // it was in the report that was taken
  // What follows from a reply is not news to the operator.
  Refresh(false);
}

Status Agent::Impl::TakeRun(const ReceivedRun& received, TimePoint began, TimePoint ended) {
  api::ValidationRun run = received.run;
  run.set_started_time(FormatMicroTime(began));
  run.set_finished_time(FormatMicroTime(ended));
  BIMETAL_TRY(state_.AddRun(std::move(run), received.fingerprint));
  Save();
  Refresh(true);
  return {};
}

void Agent::Impl::Tick() {
  const auto look = enumerator_->InProgress();
  if (look && *look > parts_.enumerate_deadline && !hung_) {
    hung_ = true;
    Log(LogLevel::kError, "the machine does not answer, every device is shut",
        {{"since_ms", look->v}});
    SetFinding("EnumerationHung",
               MakeFinding("EnumerationHung", "Critical",
                           "reading the machine takes longer than " +
                               FormatDuration(parts_.enumerate_deadline),
                           "look for a driver that hangs (dmesg), reboot the node"));
  }
  if (unsaved_) Save();
  CheckPlugins();
  Refresh(true);
}

void Agent::Impl::CheckPlugins() {
  std::string trouble;
  const auto states = plugins_.states();
  for (const Vendor vendor : {Vendor::kAmd, Vendor::kNvidia}) {
    const auto at = states.find(vendor);
    metrics_.SetPluginRegistered(
        vendor, at == states.end() ? std::nullopt : std::optional(at->second.status.registered));
    if (at == states.end() || at->second.status.last_error.empty()) continue;
    trouble += (trouble.empty() ? "" : "; ") + at->second.resource_name + ": " +
               at->second.status.last_error;
  }
  if (trouble.empty()) return SetFinding("DevicePluginNotRegistered", std::nullopt);
  SetFinding("DevicePluginNotRegistered",
             MakeFinding("DevicePluginNotRegistered", "Warning", trouble,
                         "check that the kubelet runs and that its device-plugins folder is "
                         "mounted into the agent"));
}

void Agent::Impl::SetFinding(const std::string& code, std::optional<api::Finding> finding) {
  if (finding) {
    findings_[code] = std::move(*finding);
  } else {
    findings_.erase(code);
  }
}

void Agent::Impl::Save() {
  // Before the boot is known nothing was learnt that is worth keeping.
  if (!state_.boot_known()) return;
  const auto saved = file_.Save(state_.saved());
  unsaved_ = !saved;
  if (saved) return SetFinding("StateNotSaved", std::nullopt);
  if (!findings_.contains("StateNotSaved")) {
    Log(LogLevel::kError, "state not saved", {{"reason", saved.error().message}});
  }
  SetFinding("StateNotSaved",
             MakeFinding("StateNotSaved", "Warning", saved.error().message,
                         "free the disk under the agent's stateDir; until then a restart of the "
                         "agent shuts the node for as long as the operator is away"));
}

void Agent::Impl::RefreshVendor(Vendor vendor) {
  const std::string name(VendorName(vendor));
  const auto* order = state_.OrderOf(name);
  const bool trusted = state_.boot_known() && !hung_;
  auto devices = OfferedDevices(*inventory_, vendor, trusted ? order : nullptr);
  DeviceCounts counts;
  for (const auto& device : devices) counts.offered += device.open ? 1 : 0;
  for (const auto& device : inventory_->devices) {
    if (device.vendor != vendor) continue;
    const bool known = device.healthy.known() && !hung_;
    ++(!known ? counts.unknown : device.healthy.value ? counts.healthy : counts.unhealthy);
  }
  metrics_.SetDevices(vendor, counts);
  if (open_[vendor] != counts.offered) {
    Log(LogLevel::kInfo, "open devices changed",
        {{"vendor", name}, {"open", counts.offered}, {"devices", devices.size()}});
  }
  open_[vendor] = counts.offered;
  plugins_.Apply(vendor, order, std::move(devices), inventory_->simulated);
}

void Agent::Impl::Refresh(bool at_once) {
  const ReportStats stats = client_->stats();
  if (stats.accepted) metrics_.SetReportAge(clock_.Monotonic() - *stats.accepted);
  metrics_.SetReportFailures(stats.failures);
  metrics_.SetPendingRuns(state_.saved().runs_size());
  {
    const std::lock_guard lock(acceptable_mutex_);
    acceptable_ = state_.AcceptableRuns();
  }
  if (!inventory_) return;
  for (const Vendor vendor : {Vendor::kAmd, Vendor::kNvidia}) RefreshVendor(vendor);
  auto request = BuildRequest();
  metrics_.SetFindings(CountsOf(request.inventory()));
  if (submitted_ && google::protobuf::util::MessageDifferencer::Equals(request, *submitted_)) {
    return;
  }
  client_->Submit(request, at_once && (!submitted_ || IsNews(*submitted_, request)));
  submitted_ = std::move(request);
}

api::ReportNodeRequest Agent::Impl::BuildRequest() const {
  api::ReportNodeRequest request;
  request.set_node_name(parts_.node_name);
  request.set_boot_id(state_.boot_id());
  request.set_agent_version(parts_.version);
  *request.mutable_inventory() = ToApi(*inventory_);
  SetInUse(*inventory_, pod_use_, *request.mutable_inventory());
  auto& findings = *request.mutable_inventory()->mutable_findings();
  while (findings.size() + static_cast<int>(findings_.size()) > kMaxReportedFindings) {
    findings.RemoveLast();
  }
  for (const auto& [code, finding] : findings_) *findings.Add() = finding;
  if (hung_) {
    for (auto& device : *request.mutable_inventory()->mutable_devices()) {
      device.set_health(api::HEALTH_UNKNOWN);
      device.set_health_reason("the machine does not answer");
      device.clear_in_use();
      device.clear_holder();
    }
  }
  for (auto& run : state_.RunsToReport()) *request.add_runs() = std::move(run);
  return request;
}

Status Agent::Impl::HandOver(const ReceivedRun& received, TimePoint began, TimePoint ended) {
  auto done = std::make_shared<std::promise<Status>>();
  auto result = done->get_future();
  const bool posted = loop_.Post([this, received, began, ended, done = std::move(done)] {
    done->set_value(TakeRun(received, began, ended));
  });
  if (!posted || result.wait_for(kAcceptPatience) != std::future_status::ready) {
    return Fail(ErrorCode::kUnavailable, "the agent is busy, try again");
  }
  try {
    return result.get();
  } catch (const std::future_error&) {  // the loop ended and dropped the task
    return Fail(ErrorCode::kUnavailable, "the agent stops, try again");
  }
}

bool Agent::Impl::IsAcceptable(const std::string& run) const {
  const std::lock_guard lock(acceptable_mutex_);
  return acceptable_.contains(run);
}

Result<std::unique_ptr<Agent>> Agent::Start(AgentParts parts, const Clock& clock,
                                            AgentMetrics& metrics) {
  auto impl = std::make_unique<Impl>(std::move(parts), clock, metrics);
  BIMETAL_TRY(impl->Open());
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() { impl_->Stop(); }

bool Agent::Stop() { return impl_->Stop(); }

}  // namespace bimetal::agent
