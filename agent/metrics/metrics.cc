#include "agent/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace bimetal::agent {
namespace {

prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry& registry,
                                                   const std::string& name,
                                                   const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

double ToSeconds(Millis d) { return static_cast<double>(d.v) / 1000.0; }

prometheus::Labels VendorLabel(Vendor vendor) {
  return {{"vendor", std::string(VendorName(vendor))}};
}

}  // namespace

struct AgentMetrics::Impl {
  explicit Impl(const std::string& listen)
      : registry(std::make_shared<prometheus::Registry>()),
        devices(GaugeFamily(*registry, "bimetal_agent_devices", "Devices seen, by health.")),
        offered(GaugeFamily(*registry, "bimetal_agent_offered_devices",
                            "Devices that the kubelet may give to pods.")),
        registered(GaugeFamily(*registry, "bimetal_agent_plugin_registered",
                               "1 where our device plug-in is registered with the kubelet.")),
        report_age(GaugeFamily(*registry, "bimetal_agent_report_age_seconds",
                               "Time since the operator last took a report.")),
        failures(prometheus::BuildCounter()
                     .Name("bimetal_agent_report_failures_total")
                     .Help("Reports that the operator did not take.")
                     .Register(*registry)
                     .Add({})),
        enumerate(prometheus::BuildHistogram()
                      .Name("bimetal_agent_enumerate_seconds")
                      .Help("How long one look at the machine took.")
                      .Register(*registry)
                      .Add({}, std::vector<double>{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30})),
        pending(GaugeFamily(*registry, "bimetal_agent_pending_runs",
                            "Validation runs that the operator has not taken yet.")
                    .Add({})),
        findings(GaugeFamily(*registry, "bimetal_agent_findings",
                             "Findings of the node's diagnosis, by code.")),
        exposer(listen, 1) {
    exposer.RegisterCollectable(registry);
  }

  std::shared_ptr<prometheus::Registry> registry;
  prometheus::Family<prometheus::Gauge>& devices;
  prometheus::Family<prometheus::Gauge>& offered;
  prometheus::Family<prometheus::Gauge>& registered;
  prometheus::Family<prometheus::Gauge>& report_age;
  prometheus::Counter& failures;
  prometheus::Histogram& enumerate;
  prometheus::Gauge& pending;
  prometheus::Family<prometheus::Gauge>& findings;
  prometheus::Exposer exposer;

  std::mutex mutex;  // guards what is below
  prometheus::Gauge* age = nullptr;
  std::map<Vendor, prometheus::Gauge*> registered_gauges;
  std::map<FindingCounts::key_type, prometheus::Gauge*> finding_gauges;
};

Result<std::unique_ptr<AgentMetrics>> AgentMetrics::Serve(const std::string& listen) {
  try {
    return std::unique_ptr<AgentMetrics>(new AgentMetrics(std::make_unique<Impl>(listen)));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kUnavailable, "metrics on " + listen + ": " + error.what());
  }
}

AgentMetrics::AgentMetrics(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AgentMetrics::~AgentMetrics() = default;

int AgentMetrics::port() const {
  const auto ports = impl_->exposer.GetListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

void AgentMetrics::SetDevices(Vendor vendor, const DeviceCounts& counts) {
  const auto set = [&](const char* health, int value) {
    auto labels = VendorLabel(vendor);
    labels["health"] = health;
    impl_->devices.Add(labels).Set(value);
  };
  set("healthy", counts.healthy);
  set("unhealthy", counts.unhealthy);
  set("unknown", counts.unknown);
  impl_->offered.Add(VendorLabel(vendor)).Set(counts.offered);
}

void AgentMetrics::SetPluginRegistered(Vendor vendor, std::optional<bool> registered) {
  const std::lock_guard lock(impl_->mutex);
  auto& gauge = impl_->registered_gauges[vendor];
  if (registered) {
    if (gauge == nullptr) gauge = &impl_->registered.Add(VendorLabel(vendor));
    gauge->Set(*registered ? 1 : 0);
  } else if (gauge != nullptr) {
    impl_->registered.Remove(gauge);
    gauge = nullptr;
  }
}

void AgentMetrics::SetReportAge(std::optional<Millis> age) {
  const std::lock_guard lock(impl_->mutex);
  if (!age) return;
  if (impl_->age == nullptr) impl_->age = &impl_->report_age.Add({});
  impl_->age->Set(ToSeconds(*age));
}

void AgentMetrics::SetReportFailures(std::int64_t total) {
  const std::lock_guard lock(impl_->mutex);
  const double more = static_cast<double>(total) - impl_->failures.Value();
  if (more > 0) impl_->failures.Increment(more);
}

void AgentMetrics::ObserveEnumeration(Millis took) { impl_->enumerate.Observe(ToSeconds(took)); }

void AgentMetrics::SetPendingRuns(int runs) { impl_->pending.Set(runs); }

void AgentMetrics::SetFindings(const FindingCounts& counts) {
  const std::lock_guard lock(impl_->mutex);
  std::erase_if(impl_->finding_gauges, [&](const auto& entry) {
    if (counts.contains(entry.first)) return false;
    impl_->findings.Remove(entry.second);
    return true;
  });
  for (const auto& [key, count] : counts) {
    auto& gauge = impl_->finding_gauges[key];
    if (gauge == nullptr) {
      const auto& [code, severity, vendor] = key;
      gauge = &impl_->findings.Add({{"code", code}, {"severity", severity}, {"vendor", vendor}});
    }
    gauge->Set(count);
  }
}

}  // namespace bimetal::agent
