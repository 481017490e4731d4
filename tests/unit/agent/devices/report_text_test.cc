#include "agent/devices/report_text.h"

#include <gtest/gtest.h>

namespace bimetal::agent {
namespace {

SourceReport OddReport() {
  Device device;
  device.vendor = Vendor::kAmd;
  device.id.value = "GPU-1\t2";
  device.index = 3;
  device.model = Reading<std::string>::Of("two\nlines\tand 100% \x01 of a name ", "remark");
  device.firmware =
      Reading<std::map<std::string, std::string>>::Of({{"a=b", "1;2"}, {"vbios", "113 %41"}});
  device.memory_bytes = Reading<std::int64_t>::Unknown("not\tsupported");
  device.numa_node = Reading<std::int64_t>::Of(-7);
  device.healthy = Reading<bool>::Of(false, "lost");
  device.ecc = Reading<std::string>::Failed("");
  device.links =
      Reading<std::vector<DeviceLink>>::Of({{"xgmi", "GPU=2;", 7, 6}, {"pcie", "", 0, -1}});
  device.device_nodes = {"/dev/dri/renderD128", "/dev/kfd"};
  SourceReport report;
  report.simulated = true;
  Device bare;
  bare.id.value = "GPU-2";
  report.devices = {device, bare};
  report.findings = {{"Code", Severity::kInfo, "d", "saw\nthis", "do that", "kmsg-1",
                      Effect::kCordon, "amd", "https://example.com/a=b;c"},
                     {"Other", Severity::kWarning, "", "", "", "", Effect::kRevalidate, "", ""}};
  Telemetry& telemetry = report.telemetry[device.id.value];
  telemetry.power_milliwatts = Reading<std::int64_t>::Of(750'000, "of the whole GPU");
  telemetry.throttle = Reading<std::vector<std::string>>::Of({"a;b", "power-cap"});
  telemetry.throttle_counts =
      Reading<std::map<std::string, std::int64_t>>::Of({{"a=b", 12}, {"thermal", INT64_MAX}});
  telemetry.processes = Reading<std::vector<GpuProcess>>::Of({{12, -1}, {4711, 1 << 20}});
  telemetry.fabric = Reading<std::string>::Failed("not\tsupported");
  report.facts["driver"] = Reading<std::string>::Of("1.2");
  report.facts["runtime"] = Reading<std::string>::Failed("why");
  return report;
}

TEST(ReportTextTest, RoundTripsEveryField) {
  const ParsedReport parsed = ParseReportText(ReportText(OddReport()));
  EXPECT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.bad_lines, 0u);
  EXPECT_EQ(parsed.report, OddReport());
}

TEST(ReportTextTest, KeepsWhatCameBeforeTheEndAndTheLastStep) {
  const std::string text =
      StepLine("vendor") + DeviceText(OddReport().devices[1]) + StepLine("gpu\t1");
  const ParsedReport parsed = ParseReportText(text);
  EXPECT_FALSE(parsed.complete);
  EXPECT_EQ(parsed.last_step, "gpu\t1");
  ASSERT_EQ(parsed.report.devices.size(), 1u);
}

// A probe that a driver has corrupted may write anything.
TEST(ReportTextTest, SurvivesCutsAndGarbage) {
  const std::string text = ReportText(OddReport());
  for (std::size_t cut = 0; cut < text.size(); cut += 5) {
    EXPECT_FALSE(ParseReportText(text.substr(0, cut)).complete && cut + 1 < text.size());
    std::string changed = text;
    changed[cut] = static_cast<char>(changed[cut] ^ 0x15);
    ParseReportText(changed);
  }
  EXPECT_EQ(ParseReportText("field\tmodel\tk\tx\t\nnonsense\n\ndevice\tintel\tx\t0\n").bad_lines,
            4u);
  EXPECT_EQ(ParseReportText("device\tamd\t\t0\n").bad_lines, 1u);
}

}  // namespace
}  // namespace bimetal::agent
