#include "agent/diagnosis/diagnose.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "agent/devices/kernel_log.h"
#include "agent/diagnosis/collect.h"
#include "agent/diagnosis/engine.h"
#include "agent/diagnosis/kernel_ring.h"
#include "agent/diagnosis/rules.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxLog = 4UL * 1024 * 1024;
constexpr std::uint64_t kNvidiaVendor = 0x10de;
constexpr std::uint64_t kAmdVendor = 0x1002;

Visible WhatIsVisible(const RootFiles& files) {
  Visible out;
  out.sys = files.Exists("sys/module") || files.Exists("sys/bus/pci/devices");
  out.dev = files.Exists("dev/null");
  out.modules = files.List("lib/modules").known();
  out.etc = files.Exists("etc/os-release") || files.Exists("etc/passwd");
  out.usr = files.Exists("usr/bin");
  // A pod may be shown /usr alone; a whole machine without /opt has nothing in it.
  out.opt = files.List("opt").known() || out.etc;
  out.var_lib = files.Exists("var/lib");
  out.processes = files.Exists("proc/1/comm");
  return out;
}

std::vector<std::string> NotSeen(const Look& look, const Observations& seen) {
  std::vector<std::string> out;
  const auto add = [&](bool visible, const char* what) {
    if (!visible) out.emplace_back(what);
  };
  add(look.visible.dev, "/dev: device files");
  add(look.visible.modules, "/lib/modules: which kernels have the module");
  add(look.visible.etc, "/etc: container configuration");
  add(look.visible.usr, "/usr: what is installed");
  add(look.visible.processes, "/proc: the machine's processes");
  const auto& override = seen.Get("hsa_override").value;
  if (look.visible.processes && !override.known() && override.why != kNobodyLooked) {
    out.emplace_back("/proc/*/environ: environments of processes");
  }
  if (look.log.state == Known::kUnknown) out.emplace_back("/dev/kmsg: the kernel log");
  return out;
}

Finding Plain(std::string code, std::string evidence) {
  Finding finding;
  finding.code = std::move(code);
  finding.evidence = std::move(evidence);
  ApplyRule(finding);
  return finding;
}

// A device that the kernel log names by its PCI id: the node's only one of that id.
void NameDevice(const Look& look, Finding& finding) {
  if (finding.device.size() != 9 || finding.device[4] != ':') return;
  std::set<std::string> subjects;
  for (const auto& [vendor, list] : look.pci) {
    for (const PciGpu& gpu : list.gpus) {
      char id[16];
      std::snprintf(id, sizeof id, "%04x:%04x",
                    static_cast<unsigned>(vendor == Vendor::kAmd ? kAmdVendor : kNvidiaVendor),
                    static_cast<unsigned>(gpu.device.value_or(0)) & 0xffffU);
      if (finding.device == id) subjects.insert(SubjectAt(look, gpu.address));
    }
  }
  if (subjects.size() == 1) finding.device = *subjects.begin();
}

// Drops what another finding of the same device, or of the node, explains.
void DropExplained(std::vector<Finding>& findings) {
  std::set<std::pair<std::string, std::string>> explained;  // code, device ("": any)
  for (const Finding& finding : findings) {
    for (const Rule& rule : Rules()) {
      if (rule.code != finding.code) continue;
      if (!rule.vendor.empty() && rule.vendor != finding.vendor) continue;
      for (const std::string& code : rule.replaces) explained.insert({code, finding.device});
    }
  }
  std::erase_if(findings, [&](const Finding& finding) {
    return explained.contains({finding.code, finding.device}) ||
           explained.contains({finding.code, ""});
  });
}

Step StepOf(const Finding& finding) {
  const Rule* rule = FindRule(finding.code, finding.vendor);
  return rule == nullptr ? Step::kAgent : rule->step;
}

void SortAndBound(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    const Step left = StepOf(a);
    const Step right = StepOf(b);
    return left != right ? left < right : a < b;
  });
  findings.erase(std::unique(findings.begin(), findings.end(),
                             [](const Finding& a, const Finding& b) {
                               return a.code == b.code && a.device == b.device &&
                                      a.event == b.event && a.vendor == b.vendor;
                             }),
                 findings.end());
  if (findings.size() <= kMaxFindings) return;
  // Of each severity every code is told once before one is told for yet another device.
  std::map<std::string, std::size_t> told;
  std::vector<std::tuple<int, std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    order.emplace_back(-static_cast<int>(findings[i].severity), told[findings[i].code]++, i);
  }
  std::sort(order.begin(), order.end());
  order.resize(kMaxFindings - 1);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return std::get<2>(a) < std::get<2>(b); });
  const std::size_t left_out = findings.size() - order.size();
  std::vector<Finding> kept;
  for (const auto& [severity, times, index] : order) kept.push_back(std::move(findings[index]));
  kept.push_back(Plain("TooManyFindings", std::to_string(left_out) + " more are left out"));
  findings = std::move(kept);
}

}  // namespace

std::string WhyBlind(const std::string& root) {
  const RootFiles files(root);
  for (const char* path : {"sys/bus/pci/devices", "sys/class/drm", "sys/class/kfd/kfd/topology",
                           "proc/driver/nvidia", "dev/dxg"}) {
    if (files.List(path).known() || (path == std::string_view("dev/dxg") && files.Exists(path))) {
      return {};
    }
  }
  return "neither the PCI bus (sys/bus/pci/devices) nor a GPU driver's files can be seen under " +
         root;
}

Look MakeLook(const std::string& root, const Inventory& inventory, const DiagnoseOptions& options) {
  Look look{RootFiles(root), inventory, options, {}, {}, {}};
  look.visible = WhatIsVisible(look.files);
  look.pci[Vendor::kNvidia] = ReadPciGpus(look.files, kNvidiaVendor);
  look.pci[Vendor::kAmd] = ReadPciGpus(look.files, kAmdVendor);
  look.log = look.files.KernelLog("dev/kmsg", kMaxLog);
  if (!look.log.known() && IsThisMachine(look.files)) look.log = ReadKernelRing(kMaxLog);
  return look;
}

Diagnosis Diagnose(const std::string& root, const Inventory& inventory,
                   const DiagnoseOptions& options) {
  const Look look = MakeLook(root, inventory, options);
  Observations seen;
  CollectBus(look, seen);
  CollectModules(look, seen);
  CollectNodes(look, seen);
  CollectContainers(look, seen);
  CollectDevices(look, seen);
  CollectProcesses(look, seen);

  Diagnosis out;
  out.findings = Evaluate(Rules(), seen);
  for (Finding finding : inventory.findings) {
    ApplyRule(finding);
    out.findings.push_back(std::move(finding));
  }
  const bool any_gpu = seen.Get("gpus").value.value != "0";
  if (look.log.known()) {
    for (Finding& finding : KernelFindings(look.log.value, inventory.devices)) {
      NameDevice(look, finding);
      out.findings.push_back(std::move(finding));
    }
  } else if (look.log.state == Known::kError && any_gpu) {
    out.findings.push_back(Plain("KernelLogUnreadable", look.log.why));
  }
  out.not_seen = NotSeen(look, seen);
  // A simulated machine is a part of one, on purpose.
  if (any_gpu && !out.not_seen.empty() && !inventory.simulated) {
    std::string all;
    for (const std::string& part : out.not_seen) all += (all.empty() ? "" : "; ") + part;
    out.findings.push_back(Plain("NotLookedAt", all));
  }
  DropExplained(out.findings);
  SortAndBound(out.findings);
  return out;
}

void AddDiagnosis(const std::string& root, Inventory& inventory, const DiagnoseOptions& options) {
  inventory.findings = Diagnose(root, inventory, options).findings;
}

}  // namespace bimetal::agent
