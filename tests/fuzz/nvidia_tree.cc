// NVIDIA's readers over /proc/driver/nvidia, without its library.
#include "agent/devices/nvidia/nvidia_source.h"
#include "agent/devices/nvidia/proc.h"
#include "agent/devices/report_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tree.h"

namespace {

class NoProgress final : public bimetal::agent::ReadProgress {
 public:
  bool ShouldSkip(std::string_view) const override { return false; }
  void Begin(std::string_view) override {}
};

}  // namespace

BIMETAL_FUZZ(text) {
  static const Tree tree;
  static const std::string pci = "sys/bus/pci/devices/0000:18:00.0/";
  tree.WriteParts({"proc/driver/nvidia/gpus/0000:18:00.0/information", "proc/driver/nvidia/version",
                   "sys/module/nvidia/version", pci + "vendor", pci + "class", pci + "numa_node"},
                  text);
  agent::NormalPciAddress(text);
  NoProgress progress;
  agent::NvidiaSourceOptions options;
  options.root = tree.root();
  const auto report = agent::MakeNvidiaSource(options)->Read(progress);
  const auto parsed = agent::ParseReportText(agent::ReportText(report));
  Require(parsed.complete && parsed.bad_lines == 0);
  Require(parsed.report.devices == report.devices);
}
