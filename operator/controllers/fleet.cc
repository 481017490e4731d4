#include "operator/controllers/fleet.h"

#include <algorithm>
#include <array>

#include "core/base/log.h"
#include "core/placement/books.h"
#include "kube/codec/codec.h"
#include "operator/controllers/conditions.h"
#include "operator/controllers/node_events.h"
#include "operator/controllers/pool_prices.h"
#include "operator/controllers/status_write.h"
#include "operator/controllers/stopwatch.h"

namespace bimetal::op {
namespace {

constexpr Millis kPause = Seconds(5);
constexpr std::size_t kMostGroups = 32;
constexpr std::size_t kMostText = 1024;

core::placement::Books BooksOf(const Store& store, const SchedulingCycle& cycle) {
  std::vector<core::Pod> pods = cycle.AssumedPods();
  for (const auto& [key, pod] : store.pods) {
    if (!pod.ended) pods.push_back(pod.holds);
  }
  return core::placement::MakeBooks(pods);
}

JobUsage* UsageFor(JobRow& row, core::Vendor vendor, const std::string& model) {
  for (auto& usage : row.usage) {
    if (usage.vendor == vendor && usage.model == model) return &usage;
  }
  row.usage.emplace_back();
  row.usage.back().vendor = vendor;
  row.usage.back().model = model;
  return &row.usage.back();
}

JobRow RowOf(const JobSample& sample) {
  JobRow row;
  row.name_space = sample.object->metadata().namespace_();
  row.name = sample.object->metadata().name();
  row.uid = Uid{sample.object->metadata().uid()};
  row.queue = sample.object->spec().queue_name();
  row.variant = sample.status->assignment().variant();
  row.ended = sample.ended;
  for (const auto& attempt : sample.status->attempts()) {
    core::Vendor vendor = core::Vendor::kNvidia;
    for (const auto& variant : sample.object->spec().variants()) {
      if (variant.name() == attempt.variant())
        vendor = core::ParseVendor(variant.vendor()).value_or(vendor);
    }
    auto* usage = UsageFor(row, vendor, attempt.model());
    usage->running_ms += attempt.device_milliseconds();
    if (attempt.has_nano_cost()) {
      usage->currency = sample.status->usage().currency();
      usage->hardware.v += attempt.nano_hardware();
      usage->energy.v += attempt.nano_energy();
      usage->labour.v += attempt.nano_labour();
    }
  }
  return row;
}

}  // namespace

FleetController::FleetController(const Clock& clock, Store& store, NodeController& nodes,
                                 JobController& jobs, const GatedPodController& gated_pods,
                                 const SchedulingCycle& cycle, WriteSink& writes)
    : clock_(clock),
      store_(store),
      nodes_(nodes),
      jobs_(jobs),
      gated_pods_(gated_pods),
      cycle_(cycle),
      writes_(writes) {}

std::map<std::string, FleetController::PoolSum> FleetController::SumPools() const {
  const auto books = BooksOf(store_, cycle_);
  const auto phases = nodes_.Phases();
  std::map<std::string, PoolSum> sums;
  for (const auto& [name, pool] : store_.pools) sums[name];
  std::vector<core::Node> nodes;
  nodes.reserve(store_.nodes.size());
  std::map<std::string, std::vector<const core::Node*>> members;
  for (const auto& [name, record] : store_.nodes) {
    core::Node& node = nodes.emplace_back(record.node);
    node.devices = nodes_.DevicesOf(name);
    node.cordoned = node.cordoned || nodes_.OnHold(name);
    for (const auto& [vendor, devices] : node.devices) {
      const auto it = sums.find(devices.pool.value);
      if (it == sums.end()) continue;
      auto& sum = it->second;
      members[it->first].push_back(&node);
      const auto phase = phases.find(name);
      ++sum.nodes;
      sum.admitted += phase != phases.end() && phase->second == "Admitted" ? 1 : 0;
      sum.quarantined += phase != phases.end() && phase->second == "Quarantined" ? 1 : 0;
      sum.total += static_cast<std::int64_t>(devices.devices.size());
      for (const auto& device : devices.devices) sum.models.insert(device.model);
      sum.open += core::UsableDevices(node, vendor);
      sum.held += core::WholeDevices(core::placement::HeldOn(books, node.name, vendor));
    }
  }
  for (const core::Pool& pool : PoolsOf(store_)) {
    sums[pool.name.value].space =
        core::placement::SpaceOf(members[pool.name.value], books, pool.vendor, pool.topology_keys);
  }
  return sums;
}

std::map<std::string, std::vector<api::FingerprintGroup>> FleetController::GroupPools() const {
  std::map<std::string, std::map<std::string, api::FingerprintGroup>> groups;
  for (const auto& [name, node] : store_.gpu_nodes) {
    for (const auto& vendor : node.status().vendors()) {
      for (const auto& pool : node.status().pools()) {
        const auto it = store_.pools.find(pool);
        if (it == store_.pools.end() || it->second.spec().vendor() != vendor.vendor()) continue;
        auto& group = groups[pool][vendor.fingerprint() + "|" + node.status().model()];
        group.set_fingerprint(vendor.fingerprint());
        group.set_driver_version(vendor.driver_version());
        group.set_model(node.status().model());
        group.set_nodes(group.nodes() + 1);
        if (vendor.phase() == "Admitted") group.set_admitted(group.admitted() + 1);
      }
    }
  }
  std::map<std::string, std::vector<api::FingerprintGroup>> out;
  for (const auto& [pool, by_key] : groups) {
    auto& list = out[pool];
    for (const auto& [key, group] : by_key) list.push_back(group);
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.nodes() > b.nodes(); });
    if (list.size() > kMostGroups) list.resize(kMostGroups);
  }
  return out;
}

void FleetController::SayBreaker(const std::string& pool, const std::string& text,
                                 google::protobuf::RepeatedPtrField<api::Condition>* conditions,
                                 std::int64_t generation) {
  SetCondition(conditions, "BreakerOpen", text.empty() ? "False" : "True",
               text.empty() ? "Closed" : "BreakerOpen", text, generation, clock_.Now());
  auto& told = breakers_told_[pool];
  if (text.empty()) told.clear();
  if (text.empty() || !told.empty()) return;
  told = text;
  const api::Event event = BreakerEvent(pool, text, clock_.Now());
  Log(LogLevel::kWarning, "breaker open", {{"pool", pool}, {"why", text}});
  writes_.Submit(CreateEvent(event));
}

template <class T>
void FleetController::Write(const T& object, std::map<std::string, Sent>& sent) {
  const std::string name = object.metadata().name();
  auto& last = sent[name];
  const std::string json = kube::ToJson(object.status());
  const TimePoint now = clock_.Now();
  if (last.in_flight || last.json == json || now < last.at + kPause) return;
  last.in_flight = true;
  last.at = now;
  bimetal::op::Write write = StatusWrite(object);
  write.done = [&last, json, name](const Status& status) {
    last.in_flight = false;
    if (status)
      last.json = json;
    else
      Log(LogLevel::kWarning, "status could not be written",
          {{"object", name}, {"error", status.error().message}});
  };
  writes_.Submit(std::move(write));
}

template void FleetController::Write(const api::GPUQueue& object,
                                     std::map<std::string, Sent>& sent);

void FleetController::Reconcile() {
  auto groups = GroupPools();
  for (const auto& [name, sum] : SumPools()) {
    api::GPUPool pool = store_.pools.at(name);
    auto& status = *pool.mutable_status();
    status.set_observed_generation(pool.metadata().generation());
    status.mutable_nodes()->set_total(sum.nodes);
    status.mutable_nodes()->set_admitted(sum.admitted);
    status.mutable_nodes()->set_quarantined(sum.quarantined);
    status.mutable_devices()->set_total(sum.total);
    status.mutable_devices()->set_allocated(sum.held);
    status.mutable_devices()->set_free(std::max<std::int64_t>(0, sum.open - sum.held));
    status.mutable_devices()->set_shut(std::max<std::int64_t>(0, sum.total - sum.open));
    SetCondition(status.mutable_conditions(), "Ready", sum.open > 0 ? "True" : "False",
                 sum.open > 0 ? "DevicesOpen" : "NoDevicesOpen",
                 sum.open > 0 ? "" : "no node of the pool is admitted; see kubectl get gpunodes",
                 pool.metadata().generation(), clock_.Now());
    SayBreaker(name, nodes_.BreakerText(name), status.mutable_conditions(),
               pool.metadata().generation());
    const auto vendor = core::ParseVendor(pool.spec().vendor()).value_or(core::Vendor::kNvidia);
    const auto pricing =
        JudgePricing(pool, vendor, sum.models, store_.price_books, clock_.Now());
    SetCondition(status.mutable_conditions(), "Priced", pricing.status, pricing.reason,
                 Cut(pricing.message, kMostText), pool.metadata().generation(), clock_.Now());
    status.clear_largest_free();
    for (const auto& one : sum.space.largest_free) {
      auto* row = status.add_largest_free();
      row->set_level(one.level);
      row->set_domain(one.domain);
      row->set_devices(one.devices);
    }
    status.clear_fragmentation_ratio();
    if (const auto milli = sum.space.fragmentation_milli) {
      status.set_fragmentation_ratio(static_cast<std::int32_t>(*milli));
    }
    status.clear_groups();
    for (auto& group : groups[name]) *status.add_groups() = std::move(group);
    Write(pool, pools_sent_);
  }
  ReconcileQueues();
}

void FleetController::Tick(const std::function<void(FleetSample)>& take) {
  if (pace_.Wait(clock_.Monotonic()) > Millis{0}) return;
  const std::int64_t begin = SteadyMicros();
  Reconcile();
  take(Sample(true));
  pace_.Spent(clock_.Monotonic(), SteadyMicros() - begin);
}

FleetSample FleetController::Sample(bool leader) const {
  FleetSample out;
  out.now = clock_.Now();
  out.leader = leader;
  const auto books = BooksOf(store_, cycle_);
  std::map<std::string, std::int64_t> phases;
  for (const auto& [name, phase] : nodes_.Phases()) ++phases[phase];
  for (const auto& [phase, count] : phases) out.nodes.push_back({phase, count});
  for (const auto& [name, findings] : nodes_.Findings()) {
    std::map<std::pair<std::string, std::string>, std::int64_t> counts;
    for (const auto& finding : findings) ++counts[{finding.code(), finding.severity()}];
    for (const auto& [key, count] : counts) {
      out.findings.push_back({name, key.first, key.second, count});
    }
  }
  for (const auto& [name, pool] : store_.pools) {
    out.breakers.push_back({name, !nodes_.BreakerText(name).empty()});
  }
  for (const auto& [name, object] : store_.gpu_nodes) {
    std::map<std::string, std::int64_t> held;
    for (const auto vendor : core::kVendors) {
      held[std::string(core::VendorName(vendor))] =
          core::WholeDevices(core::placement::HeldOn(books, NodeName{name}, vendor));
    }
    const auto record = store_.nodes.find(name);
    const bool offline = record == store_.nodes.end() || !record->second.node.ready;
    for (const auto& device : object.status().devices()) {
      DeviceRow row;
      row.node = name;
      row.uuid = device.id();
      row.vendor = core::ParseVendor(device.vendor()).value_or(core::Vendor::kNvidia);
      row.model = device.model();
      row.architecture = device.architecture();
      row.partition = device.partition();
      row.driver_version = object.status().driver_version();
      row.pci_address = device.pci_address();
      row.index = device.index();
      for (const auto& pool : object.status().pools()) {
        const auto it = store_.pools.find(pool);
        if (it != store_.pools.end() && it->second.spec().vendor() == device.vendor())
          row.pool = pool;
      }
      if (offline) row.state = DeviceState::kOffline;
      // The kubelet picks the device, so which one is taken is not known here; how many are is.
      else if (held[device.vendor()]-- > 0)
        row.state = DeviceState::kAllocated;
      else if (device.open())
        row.state = DeviceState::kIdle;
      else if (device.health() == "Unhealthy")
        row.state = DeviceState::kUnhealthy;
      else
        row.state = DeviceState::kShut;
      out.devices.push_back(std::move(row));
    }
  }
  std::map<std::string, std::int64_t> states;
  for (const auto& sample : jobs_.Samples()) {
    ++states[sample.status->state().empty() ? "Pending" : sample.status->state()];
    if (sample.status->usage().basis() == "PriceMissing") ++out.jobs_without_price;
    if (sample.status->attempts_size() > 0) out.job_rows.push_back(RowOf(sample));
  }
  for (const auto& [state, count] : states) out.jobs.push_back({state, count});
  for (auto& row : gated_pods_.Usage()) out.job_rows.push_back(std::move(row));
  for (const auto& [name, counts] : cycle_.Queues()) {
    QueueRow row;
    row.queue = name;
    row.pending_jobs = counts.pending;
    row.admitted_jobs = counts.admitted;
    for (const auto& [vendor, devices] : counts.used) row.admitted_gpus += devices;
    out.queues.push_back(row);
  }
  return out;
}

}  // namespace bimetal::op
