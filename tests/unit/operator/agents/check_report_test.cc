#include "operator/agents/check_report.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

namespace bimetal::op {
namespace {

api::ReportNodeRequest Good() {
  api::ReportNodeRequest request;
  request.set_node_name("n1");
  request.set_boot_id("0b5a");
  request.set_seq(1);
  request.set_agent_version("1.2.3");
  auto& inventory = *request.mutable_inventory();
  for (int i = 0; i < 4; ++i) {
    auto& device = *inventory.add_devices();
    device.set_id((i < 2 ? "GPU-" : "0000:0") + std::to_string(i));
    device.set_vendor(i < 2 ? "nvidia" : "amd");
    device.set_index(i);
    device.set_model("NVIDIA H100 80GB HBM3");
    device.set_memory_bytes(1);
    device.set_health(api::HEALTHY);
    (*device.mutable_firmware())["vbios"] = "96.00 (a)";
  }
  for (const char* vendor : {"nvidia", "amd"}) {
    auto& stack = *inventory.add_stacks();
    stack.set_vendor(vendor);
    stack.set_fingerprint("abc");
  }
  auto& finding = *inventory.add_findings();
  finding.set_code("XidSeen");
  finding.set_severity("Warning");
  finding.set_evidence("two lines\nof text");
  auto& run = *request.add_runs();
  run.set_run("5c1f");
  run.set_vendor("amd");
  run.set_backend("host");
  run.set_started_time("2026-01-01T00:00:00Z");
  auto& verdict = *run.add_verdicts();
  verdict.set_check("memory-pattern");
  verdict.set_device("0000:02");
  verdict.set_verdict("Pass");
  return request;
}

TEST(CheckReport, AcceptsACompleteReportAndOneWithoutDevices) {
  EXPECT_TRUE(CheckReport(Good()));
  api::ReportNodeRequest empty;
  empty.set_node_name("n1");
  empty.set_boot_id("b");
  empty.set_seq(std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(CheckReport(empty));
}

TEST(CheckReport, AcceptsAReportAtItsBounds) {
  api::ReportNodeRequest request = Good();
  auto& devices = *request.mutable_inventory()->mutable_devices();
  while (devices.size() < kMaxDevices) {
    devices.Add()->CopyFrom(devices[0]);
    devices[devices.size() - 1].set_id("d" + std::to_string(devices.size()));
  }
  while (request.runs_size() < kMaxRuns) {
    request.add_runs()->CopyFrom(request.runs(0));
    request.mutable_runs(request.runs_size() - 1)->set_run(std::to_string(request.runs_size()));
  }
  auto& verdicts = *request.mutable_runs(0)->mutable_verdicts();
  while (verdicts.size() < kMaxVerdicts) verdicts.Add()->CopyFrom(verdicts[0]);
  request.set_boot_id(std::string(128, 'b'));
  const auto status = CheckReport(request);
  EXPECT_TRUE(status) << status.error().message;
}

struct Case {
  const char* message;
  std::function<void(api::ReportNodeRequest&)> spoil;
};

class BadReport : public testing::TestWithParam<Case> {};

TEST_P(BadReport, IsRefusedWithTheNameOfTheField) {
  api::ReportNodeRequest request = Good();
  GetParam().spoil(request);
  const auto status = CheckReport(request);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(status.error().message, GetParam().message);
}

api::Device& Dev(api::ReportNodeRequest& r, int i) {
  return *r.mutable_inventory()->mutable_devices(i);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadReport,
    testing::Values(
        Case{"node_name: is empty", [](auto& r) { r.clear_node_name(); }},
        Case{"boot_id: is empty", [](auto& r) { r.clear_boot_id(); }},
        Case{"boot_id: is longer than 128 bytes",
             [](auto& r) { r.set_boot_id(std::string(129, 'b')); }},
        Case{"boot_id: \"a?b\" has characters other than visible ASCII",
             [](auto& r) { r.set_boot_id("a\nb"); }},
        Case{"seq: 0 is not positive", [](auto& r) { r.set_seq(0); }},
        Case{"seq: -1 is not positive", [](auto& r) { r.set_seq(-1); }},
        Case{"agent_version: has control characters",
             [](auto& r) { r.set_agent_version("\x1b[2J"); }},
        Case{"inventory.devices: has 257 entries, more than 256",
             [](auto& r) {
               while (r.inventory().devices_size() < 257) r.mutable_inventory()->add_devices();
             }},
        Case{"inventory.devices[1].id: is empty", [](auto& r) { Dev(r, 1).clear_id(); }},
        Case{"inventory.devices[1].id: is longer than 253 bytes",
             [](auto& r) { Dev(r, 1).set_id(std::string(254, 'd')); }},
        Case{"inventory.devices[1].id: \"GPU 1\" has characters other than visible ASCII",
             [](auto& r) { Dev(r, 1).set_id("GPU 1"); }},
        Case{"inventory.devices[3].id: \"GPU-1\" is also the id of devices[1]",
             [](auto& r) { Dev(r, 3).set_id("GPU-1"); }},
        Case{"inventory.devices[0].vendor: \"intel\" is none of amd, nvidia",
             [](auto& r) { Dev(r, 0).set_vendor("intel"); }},
        Case{"inventory.devices[0].vendor: \"\" is none of amd, nvidia",
             [](auto& r) { Dev(r, 0).clear_vendor(); }},
        Case{"inventory.devices[0].memory_bytes: -1 is negative",
             [](auto& r) { Dev(r, 0).set_memory_bytes(-1); }},
        Case{"inventory.devices[0].health: 9 is not a known value",
             [](auto& r) { Dev(r, 0).set_health(static_cast<api::Health>(9)); }},
        Case{"inventory.devices[0].holder: is longer than 317 bytes",
             [](auto& r) { Dev(r, 0).set_holder(std::string(318, 'x')); }},
        Case{"inventory.devices[0].holder: \"team/a b\" has characters other than visible ASCII",
             [](auto& r) { Dev(r, 0).set_holder("team/a b"); }},
        Case{"inventory.devices[0].health_reason: is longer than 1024 bytes",
             [](auto& r) { Dev(r, 0).set_health_reason(std::string(1025, 'x')); }},
        Case{"inventory.devices[0].firmware: is empty",
             [](auto& r) { (*Dev(r, 0).mutable_firmware())[""] = "1"; }},
        Case{"inventory.devices[0].firmware: has 65 entries, more than 64",
             [](auto& r) {
               for (int i = 0; i < 64; ++i) {
                 (*Dev(r, 0).mutable_firmware())["f" + std::to_string(i)] = "1";
               }
             }},
        Case{"inventory.stacks[1].vendor: \"nvidia\" has a stack already",
             [](auto& r) { r.mutable_inventory()->mutable_stacks(1)->set_vendor("nvidia"); }},
        Case{"inventory.stacks[0].fingerprint: is empty",
             [](auto& r) { r.mutable_inventory()->mutable_stacks(0)->clear_fingerprint(); }},
        Case{"inventory.devices[2].vendor: \"amd\" has no entry in inventory.stacks",
             [](auto& r) { r.mutable_inventory()->mutable_stacks()->RemoveLast(); }},
        Case{"inventory.findings[0].severity: \"Bad\" is none of Info, Warning, Critical",
             [](auto& r) { r.mutable_inventory()->mutable_findings(0)->set_severity("Bad"); }},
        Case{"runs: has 17 entries, more than 16",
             [](auto& r) {
               while (r.runs_size() < 17) r.add_runs();
             }},
        Case{"runs[0].run: is empty", [](auto& r) { r.mutable_runs(0)->clear_run(); }},
        Case{"runs[1].run: \"5c1f\" is also the id of runs[0]",
             [](auto& r) { r.add_runs()->CopyFrom(r.runs(0)); }},
        Case{"runs[0].backend: \"opencl\" is none of cuda, hip, host",
             [](auto& r) { r.mutable_runs(0)->set_backend("opencl"); }},
        Case{"runs[0].started_time: \"today\" is not an RFC 3339 time",
             [](auto& r) { r.mutable_runs(0)->set_started_time("today"); }},
        Case{"runs[0].verdicts: has 4097 entries, more than 4096",
             [](auto& r) {
               auto& verdicts = *r.mutable_runs(0)->mutable_verdicts();
               while (verdicts.size() < 4097) verdicts.Add();
             }},
        Case{"runs[0].verdicts[0].verdict: \"pass\" is none of Pass, Degraded, Fail, Inconclusive, "
             "NoProfile",
             [](auto& r) { r.mutable_runs(0)->mutable_verdicts(0)->set_verdict("pass"); }},
        Case{"runs[0].verdicts[0].evidence: is longer than 4096 bytes", [](auto& r) {
               r.mutable_runs(0)->mutable_verdicts(0)->set_evidence(std::string(4097, 'e'));
             }}));

TEST(CheckReport, MessagesStayShortWhateverTheValue) {
  api::ReportNodeRequest request = Good();
  request.mutable_inventory()->mutable_devices(0)->set_vendor(std::string(1 << 20, '\x01'));
  EXPECT_LT(CheckReport(request).error().message.size(), 200u);
}

}  // namespace
}  // namespace bimetal::op
