#include "operator/metrics/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "operator/metrics/families.h"

namespace bimetal::op {
namespace {

const TimePoint kNow{1'800'000'000'000};

// The exposition, read as Prometheus reads it: series text ("name{labels}") -> value. Every line
// must have the form that the format demands.
struct Scrape {
  std::map<std::string, double> values;
  std::map<std::string, std::string> types;
  std::vector<std::string> order;  // of the families

  explicit Scrape(const std::string& text) {
    static const std::regex kComment(R"(^# (HELP|TYPE) ([a-z_]+) (.+)$)");
    static const std::regex kSeries(
        R"(^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (-?[0-9.e+-]+|\+Inf|NaN)$)");
    EXPECT_TRUE(text.empty() || text.back() == '\n');
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_match(line, match, kComment)) {
        if (match[1] == "TYPE") {
          EXPECT_TRUE(types.emplace(match[2], match[3]).second) << "twice: " << line;
          order.push_back(match[2]);
        }
      } else if (std::regex_match(line, match, kSeries)) {
        const std::string key = std::string(match[1]) + std::string(match[2]);
        EXPECT_TRUE(values.emplace(key, std::stod(match[3])).second) << "twice: " << line;
      } else {
        ADD_FAILURE() << "not a line of the format: " << line;
      }
    }
  }

  double operator[](const std::string& series) const {
    const auto found = values.find(series);
    if (found != values.end()) return found->second;
    ADD_FAILURE() << "no series " << series;
    return NAN;
  }

  int Count(const std::string& family) const {
    int n = 0;
    for (const auto& [key, value] : values) {
      n += key == family || key.starts_with(family + "{") ? 1 : 0;
    }
    return n;
  }
};

DeviceRow Device(const std::string& uuid, DeviceState state,
                 core::Vendor vendor = core::Vendor::kNvidia) {
  DeviceRow row;
  row.node = "n1";
  row.uuid = uuid;
  row.vendor = vendor;
  row.model = vendor == core::Vendor::kAmd ? "MI300X" : "H100";
  row.architecture = "sm_90";
  row.driver_version = "550.1";
  row.pci_address = "0000:01:00.0";
  row.pool = "pool";
  row.state = state;
  return row;
}

FleetSample Sample() {
  FleetSample sample;
  sample.now = kNow;
  sample.leader = true;
  sample.devices = {Device("a", DeviceState::kAllocated), Device("b", DeviceState::kAllocated),
                    Device("c", DeviceState::kShut),
                    Device("d", DeviceState::kIdle, core::Vendor::kAmd)};
  sample.nodes = {{"Admitted", 3}, {"Quarantined", 1}};
  sample.findings = {{"n1", "XidFatal", "Critical", 2}};
  sample.breakers = {{"pool", true}};
  sample.queues = {{"default", core::Vendor::kNvidia, 1, 8, 2, 16},
                   {"default", std::nullopt, 3, 4, 0, 0}};
  sample.jobs = {{"Running", 2}};
  JobRow job;
  job.name_space = "team";
  job.name = "train";
  job.uid = Uid{"u-1"};
  job.queue = "default";
  job.variant = "cuda";
  JobUsage usage;
  usage.model = "H100";
  usage.startup_ms = 1'500;
  usage.running_ms = 3'600'001;
  usage.lost_ms = {{"preemption", 250}};
  usage.currency = "EUR";
  usage.hardware = NanoCurrency{2'000'000'001};
  usage.labour = NanoCurrency{5};
  job.usage = {usage};
  sample.job_rows = {job};
  sample.jobs_without_price = 4;
  sample.event_queue_depth = 7;
  return sample;
}

constexpr char kJob[] = R"(namespace="team",job_name="train",job_id="u-1",)";

std::string JobSeries(const std::string& family, const std::string& rest) {
  return family + "{" + kJob + R"(vendor="nvidia",device_model="H100",)" + rest + "}";
}

TEST(Metrics, WhatTheLoopSampledIsExposed) {
  Metrics metrics("1.2.3");
  metrics.Update(Sample());
  const Scrape scrape(metrics.Expose());
  EXPECT_EQ(scrape[R"(bimetal_build_info{version="1.2.3"})"], 1);
  EXPECT_EQ(scrape["bimetal_leader"], 1);
  EXPECT_EQ(
      scrape
          [R"(bimetal_devices{vendor="nvidia",device_model="H100",pool="pool",state="allocated"})"],
      2);
  EXPECT_EQ(
      scrape[R"(bimetal_devices{vendor="nvidia",device_model="H100",pool="pool",state="shut"})"],
      1);
  EXPECT_EQ(
      scrape[R"(bimetal_devices{vendor="nvidia",device_model="H100",pool="pool",state="idle"})"],
      0);
  EXPECT_EQ(
      scrape[R"(bimetal_devices{vendor="amd",device_model="MI300X",pool="pool",state="idle"})"], 1);
  EXPECT_EQ(
      scrape
          [R"(bimetal_device_state{node="n1",uuid="c",vendor="nvidia",device_model="H100",state="shut"})"],
      1);
  EXPECT_EQ(scrape[R"(bimetal_nodes{phase="Admitted"})"], 3);
  EXPECT_EQ(scrape[R"(bimetal_nodes{phase="Lost"})"], 0);
  EXPECT_EQ(scrape[R"(bimetal_node_findings{node="n1",code="XidFatal",severity="Critical"})"], 2);
  EXPECT_EQ(scrape[R"(bimetal_breaker_open{pool="pool"})"], 1);
  EXPECT_EQ(scrape[R"(bimetal_queue_pending_jobs{queue="default",vendor_constraint="any"})"], 3);
  EXPECT_EQ(scrape[R"(bimetal_queue_admitted_gpus{queue="default",vendor_constraint="nvidia"})"],
            16);
  EXPECT_EQ(scrape[R"(bimetal_jobs{state="Running"})"], 2);
  EXPECT_EQ(scrape[R"(bimetal_jobs{state="Failed"})"], 0);
  EXPECT_EQ(scrape[std::string("bimetal_job_info{") + kJob + R"(queue="default",variant="cuda"})"],
            1);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_gpu_seconds_total", R"(phase="running")")], 3600.001);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_gpu_seconds_total", R"(phase="startup")")], 1.5);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_lost_gpu_seconds_total", R"(reason="preemption")")],
            0.25);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_lost_gpu_seconds_total", R"(reason="failure")")], 0);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_cost_total", R"(component="hardware",currency="EUR")")],
            2.000000001);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_cost_total", R"(component="labour",currency="EUR")")],
            5e-9);
  EXPECT_EQ(scrape[JobSeries("bimetal_job_cost_total", R"(component="energy",currency="EUR")")], 0);
  EXPECT_EQ(scrape["bimetal_jobs_without_price"], 4);
  EXPECT_EQ(scrape["bimetal_books_difference_devices"], 0);
  EXPECT_EQ(scrape["bimetal_event_queue_depth"], 7);
}

TEST(Metrics, EachDeviceIsInExactlyOneState) {
  Metrics metrics("v");
  metrics.Update(Sample());
  const Scrape scrape(metrics.Expose());
  std::map<std::string, double> sums;
  double devices = 0;
  for (const auto& [key, value] : scrape.values) {
    if (key.starts_with("bimetal_device_state{")) sums[key.substr(0, key.find(",vendor"))] += value;
    if (key.starts_with("bimetal_devices{")) devices += value;
  }
  EXPECT_EQ(sums.size(), 4u);
  for (const auto& [device, sum] : sums) EXPECT_EQ(sum, 1) << device;
  EXPECT_EQ(devices, 4);
}

TEST(Metrics, EventsAreCountedFromZero) {
  Metrics metrics("v");
  Scrape before(metrics.Expose());
  EXPECT_EQ(before[R"(bimetal_agent_reports_total{result="accepted"})"], 0);
  EXPECT_EQ(before[R"(bimetal_api_writes_total{verb="create",resource="pods",result="Ok"})"], 0);
  EXPECT_EQ(before[R"(bimetal_watch_restarts_total{resource="pods",reason="gone"})"], 0);
  metrics.CountAgentReport("accepted");
  metrics.CountAgentReport("accepted");
  metrics.CountAgentReport("something new");
  metrics.CountApiWrite("create", "pods", std::nullopt);
  metrics.CountApiWrite("patch", "nodes", ErrorCode::kConflict);
  metrics.CountWatchRestart("pods", "gone");
  metrics.CountValidationRun("L1", core::Vendor::kAmd, "fail");
  const Scrape scrape(metrics.Expose());
  EXPECT_EQ(scrape[R"(bimetal_agent_reports_total{result="accepted"})"], 2);
  EXPECT_EQ(scrape[R"(bimetal_agent_reports_total{result="other"})"], 1);
  EXPECT_EQ(scrape[R"(bimetal_api_writes_total{verb="create",resource="pods",result="Ok"})"], 1);
  EXPECT_EQ(scrape[R"(bimetal_api_writes_total{verb="patch",resource="nodes",result="Conflict"})"],
            1);
  EXPECT_EQ(scrape[R"(bimetal_watch_restarts_total{resource="pods",reason="gone"})"], 1);
  EXPECT_EQ(scrape[R"(bimetal_validation_runs_total{level="L1",vendor="amd",result="fail"})"], 1);
}

TEST(Metrics, HistogramsCumulateAndTheirLastBucketIsTheirCount) {
  Metrics metrics("v");
  metrics.ObserveLoopLag(1'000);  // a bound belongs to its bucket
  metrics.ObserveLoopLag(1'001);
  metrics.ObserveLoopLag(60'000'000);
  metrics.ObserveLoopLag(-5);  // clocks: never a negative sum
  metrics.ObserveCycle("placed", 2'000);
  metrics.ObserveQueueWait("default", Millis{90'000});
  const Scrape scrape(metrics.Expose());
  EXPECT_EQ(scrape[R"(bimetal_loop_lag_seconds_bucket{le="0.001"})"], 2);
  EXPECT_EQ(scrape[R"(bimetal_loop_lag_seconds_bucket{le="0.005"})"], 3);
  EXPECT_EQ(scrape[R"(bimetal_loop_lag_seconds_bucket{le="30"})"], 3);
  EXPECT_EQ(scrape[R"(bimetal_loop_lag_seconds_bucket{le="+Inf"})"], 4);
  EXPECT_EQ(scrape["bimetal_loop_lag_seconds_count"], 4);
  EXPECT_DOUBLE_EQ(scrape["bimetal_loop_lag_seconds_sum"], 60.002001);
  EXPECT_EQ(scrape[R"(bimetal_placement_duration_seconds_bucket{result="placed",le="0.005"})"], 1);
  EXPECT_EQ(scrape[R"(bimetal_queue_wait_seconds_sum{queue="default"})"], 90);
  EXPECT_EQ(scrape[R"(bimetal_queue_wait_seconds_bucket{queue="default",le="60"})"], 0);
  EXPECT_EQ(scrape[R"(bimetal_queue_wait_seconds_bucket{queue="default",le="300"})"], 1);
}

TEST(Metrics, AnEndedJobsSeriesAreWithdrawnAQuarterOfAnHourAfterItsEnd) {
  Metrics metrics("v");
  FleetSample sample = Sample();
  sample.job_rows[0].ended = kNow - Minutes(15) + Millis{1};
  metrics.Update(sample);
  EXPECT_EQ(Scrape(metrics.Expose()).Count("bimetal_job_cost_total"), 4);
  sample.now = kNow + Millis{1};
  metrics.Update(sample);
  const Scrape scrape(metrics.Expose());
  for (const char* family : {"bimetal_job_cost_total", "bimetal_job_gpu_seconds_total",
                             "bimetal_job_lost_gpu_seconds_total", "bimetal_job_info"}) {
    EXPECT_EQ(scrape.Count(family), 0) << family;
    EXPECT_FALSE(scrape.types.contains(family)) << family;
  }
}

TEST(Metrics, WithoutAPriceThereIsDeviceTimeAndNoCost) {
  Metrics metrics("v");
  FleetSample sample = Sample();
  sample.job_rows[0].usage[0].currency.clear();
  metrics.Update(sample);
  const Scrape scrape(metrics.Expose());
  EXPECT_EQ(scrape.Count("bimetal_job_cost_total"), 0);
  EXPECT_EQ(scrape.Count("bimetal_job_gpu_seconds_total"), 3);
}

TEST(Metrics, BeforeTheFirstSampleTheFleetIsUnknownAndNotEmpty) {
  const Scrape scrape(Metrics("v").Expose());
  EXPECT_EQ(scrape["bimetal_leader"], 0);
  EXPECT_EQ(scrape.Count("bimetal_nodes"), 0);
  EXPECT_EQ(scrape.Count("bimetal_jobs"), 0);
  EXPECT_EQ(scrape.Count("bimetal_books_difference_devices"), 0);
}

TEST(Metrics, RowsOfTheSameLabelsAreOneSeries) {
  Metrics metrics("v");
  FleetSample sample = Sample();
  sample.job_rows[0].usage.push_back(sample.job_rows[0].usage[0]);
  sample.devices.push_back(sample.devices[0]);
  sample.nodes.push_back({"Admitted", 2});
  metrics.Update(sample);
  const Scrape scrape(metrics.Expose());  // fails itself on a series that comes twice
  EXPECT_EQ(scrape[JobSeries("bimetal_job_gpu_seconds_total", R"(phase="startup")")], 3);
  EXPECT_EQ(scrape[R"(bimetal_nodes{phase="Admitted"})"], 5);
  EXPECT_EQ(
      scrape
          [R"(bimetal_device_state{node="n1",uuid="a",vendor="nvidia",device_model="H100",state="allocated"})"],
      1);
}

TEST(Metrics, LabelsAreEscapedAndTheTextDoesNotDependOnTheOrderOfRows) {
  Metrics metrics("v");
  FleetSample sample = Sample();
  sample.job_rows[0].name = "a\"b\\c\nd";
  metrics.Update(sample);
  const std::string text = metrics.Expose();
  EXPECT_NE(text.find(R"(job_name="a\"b\\c\nd")"), std::string::npos);
  Scrape{text};
  std::reverse(sample.devices.begin(), sample.devices.end());
  std::reverse(sample.queues.begin(), sample.queues.end());
  std::reverse(sample.nodes.begin(), sample.nodes.end());
  metrics.Update(sample);
  EXPECT_EQ(metrics.Expose(), text);
}

TEST(Metrics, AFamilyAtItsLimitIsCutAndTheCutIsCounted) {
  Metrics metrics("v", 30);
  FleetSample sample = Sample();
  for (int i = 0; i < 100; ++i) {
    JobRow row = sample.job_rows[0];
    row.uid = Uid{"x" + std::to_string(i)};
    sample.job_rows.push_back(row);
  }
  metrics.Update(sample);
  for (int i = 0; i < 100; ++i) metrics.ObserveQueueWait("q" + std::to_string(i), Millis{1});
  const Scrape scrape(metrics.Expose());
  EXPECT_EQ(scrape.Count("bimetal_job_info"), 30);
  EXPECT_EQ(scrape[R"(bimetal_series_dropped_total{family="bimetal_job_info"})"], 71);
  EXPECT_EQ(scrape.Count("bimetal_queue_wait_seconds_count"), 30);
  EXPECT_EQ(scrape[R"(bimetal_series_dropped_total{family="bimetal_nodes"})"], 0);
  EXPECT_EQ(Scrape(metrics.Expose())[R"(bimetal_series_dropped_total{family="bimetal_job_info"})"],
            142);
}

TEST(Metrics, EveryFamilyIsDeclaredOnceAndServedUnderItsConventions) {
  Metrics metrics("v");
  metrics.Update(Sample());
  metrics.ObserveCycle("idle", 1);
  metrics.ObserveQueueWait("q", Millis{1});
  const Scrape scrape(metrics.Expose());
  std::set<std::string> declared;
  const char* kTypes[] = {"gauge", "counter", "histogram"};
  for (const auto* family : family::kAll) {
    const std::string name(family->name);
    EXPECT_TRUE(declared.insert(name).second) << name;
    EXPECT_TRUE(name.starts_with("bimetal_")) << name;
    EXPECT_EQ(family->type == FamilyType::kCounter, name.ends_with("_total")) << name;
    EXPECT_EQ(family->type == FamilyType::kHistogram, name.ends_with("_seconds")) << name;
    EXPECT_TRUE(family->help.ends_with(".")) << name;
    // Labels that a scrape adds itself would turn into exported_*.
    for (const char* taken : {"job", "instance", "pod", "container"}) {
      EXPECT_FALSE(std::regex_search(std::string(family->labels),
                                     std::regex("(^| )" + std::string(taken) + "( |$)")))
          << name;
    }
    ASSERT_TRUE(scrape.types.contains(name)) << name << " is declared but not served";
    EXPECT_EQ(scrape.types.at(name), kTypes[static_cast<int>(family->type)]);
  }
  for (const auto& name : scrape.order) EXPECT_TRUE(declared.contains(name)) << name;
}

TEST(Metrics, TheReferencePageListsEveryFamilyWithItsTypeAndLabels) {
  const char* root = std::getenv("BIMETAL_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  std::ifstream file(std::string(root) + "/docs/reference/metrics.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  const char* kTypes[] = {"gauge", "counter", "histogram"};
  for (const auto* family : family::kAll) {
    std::string labels;
    std::istringstream words{std::string(family->labels)};
    for (std::string word; words >> word;) labels += (labels.empty() ? "`" : ", `") + word + "`";
    const std::string row = "| `" + std::string(family->name) + "` | " +
                            kTypes[static_cast<int>(family->type)] + " | " +
                            (labels.empty() ? "-" : labels) + " |";
    EXPECT_NE(text.str().find(row), std::string::npos) << "docs/reference/metrics.md lacks " << row;
  }
}

TEST(Metrics, PrometheusOwnLinterHasNothingToSay) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed: the exposition was not checked by it";
  }
  Metrics metrics("v");
  metrics.Update(Sample());
  metrics.ObserveCycle("idle", 1);
  metrics.ObserveQueueWait("q", Millis{1});
  const auto path = std::filesystem::temp_directory_path() /
                    ("bimetal-metrics-" + std::to_string(::getpid()) + ".txt");
  std::ofstream(path) << metrics.Expose();
  EXPECT_EQ(std::system(("promtool check metrics <" + path.string()).c_str()), 0);
  std::filesystem::remove(path);
}

TEST(Metrics, ThreadsMayCountUpdateAndExposeAtOnce) {
  Metrics metrics("v");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        metrics.CountAgentReport("accepted");
        metrics.ObserveLoopLag(i);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    metrics.Update(Sample());
    EXPECT_FALSE(metrics.Expose().empty());
  }
  for (auto& thread : threads) thread.join();
  const Scrape scrape(metrics.Expose());
  EXPECT_EQ(scrape[R"(bimetal_agent_reports_total{result="accepted"})"], 2000);
  EXPECT_EQ(scrape["bimetal_loop_lag_seconds_count"], 2000);
}

}  // namespace
}  // namespace bimetal::op
