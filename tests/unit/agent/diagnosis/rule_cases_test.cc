// Every rule with a condition: a machine on which it must fire, and a near miss on which it must
// not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "agent/diagnosis/engine.h"
#include "agent/diagnosis/rules.h"
#include "tests/unit/agent/diagnosis/machines.h"

namespace bimetal::agent {
namespace {

// A literal with zero bytes in it, without the last one that the compiler adds.
template <std::size_t N>
std::string Bytes(const char (&text)[N]) {
  return {text, N - 1};
}

using testing::IsEmpty;

using Change = std::function<void(TestTree&)>;
using Tweak = std::function<void(Inventory&)>;

struct Machine {
  Change write;
  Tweak tweak;  // what a tree cannot say: telemetry
};

struct Case {
  std::string code;
  std::string what;
  Machine fires;
  Machine near_miss;
};

Diagnosis Check(const Machine& machine) {
  TestTree tree;
  machine.write(tree);
  Inventory inventory = InventoryOf(tree.root());
  if (machine.tweak) machine.tweak(inventory);
  return Diagnose(tree.root(), inventory);
}

Machine Nvidia(Change change = {}, Tweak tweak = {}) {
  return {[change](TestTree& tree) {
            WriteNvidia(tree);
            if (change) change(tree);
          },
          std::move(tweak)};
}

Machine Amd(Change change = {}, Tweak tweak = {}, const std::string& gfx = "90402") {
  return {[change, gfx](TestTree& tree) {
            WriteAmd(tree, gfx);
            if (change) change(tree);
          },
          std::move(tweak)};
}

Machine Host(Change change) {
  return {[change](TestTree& tree) {
            WriteHost(tree);
            change(tree);
          },
          {}};
}

// An NVIDIA card that no driver has taken, on a host with nothing of NVIDIA's.
Machine Driverless(Change change) {
  return Host([change](TestTree& tree) {
    WriteNvidiaCard(tree, "");
    tree.Write("lib/modules/6.8.0-45-generic/modules.dep", "kernel/drivers/net/dummy.ko:\n");
    change(tree);
  });
}

Machine AmdDriverless(Change change) {
  return Host([change](TestTree& tree) {
    WriteAmdCard(tree, "");
    tree.Write("lib/modules/6.8.0-45-generic/modules.dep", "kernel/drivers/net/dummy.ko:\n");
    change(tree);
  });
}

Tweak Telemetered(std::function<void(Telemetry&)> change) {
  return [change](Inventory& inventory) {
    for (const Device& device : inventory.devices) change(inventory.telemetry[device.id.value]);
  };
}

Tweak Throttled(const std::string& reason, std::int64_t celsius = 95) {
  return Telemetered([reason, celsius](Telemetry& telemetry) {
    telemetry.temperature_millicelsius = Reading<std::int64_t>::Of(celsius * 1000);
    telemetry.throttle = Reading<std::vector<std::string>>::Of({reason});
  });
}

Change Nothing() {
  return [](TestTree&) {};
}

constexpr char kKeyRejected[] = "4,2,9,-;Loading of module with unavailable key is rejected\n";
constexpr char kSecureBoot[] =
    "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr char kOtherKernel[] = "lib/modules/6.8.0-40-generic/updates/dkms/nvidia.ko.zst";
constexpr char kNvidiaCard[] = "sys/bus/pci/devices/0000:01:00.0/";
constexpr char kAmdCard[] = "sys/bus/pci/devices/0000:03:00.0/";

std::vector<Case> BusCases() {
  return {
      {"NoGpu", "an empty bus",
       Host([](TestTree& t) { t.Write("sys/bus/pci/devices/x/vendor", "1"); }), Nvidia()},
      {"DriverWithoutGpu", "a module and an empty bus", Host([](TestTree& t) {
         t.Write("sys/bus/pci/devices/x/vendor", "1").Write("sys/module/nvidia/version", "580.1");
       }),
       Host([](TestTree& t) { t.Write("sys/bus/pci/devices/x/vendor", "1"); })},
      {"NouveauBound", "nouveau has the card",
       Host([](TestTree& t) { WriteNvidiaCard(t, "nouveau"); }), Host([](TestTree& t) {
         WriteNvidiaCard(t, "nvidia");
         t.Write("sys/module/nouveau/refcnt", "0");
       })},
      {"BoundToVfio", "a card for virtual machines",
       Host([](TestTree& t) { WriteAmdCard(t, "vfio-pci"); }), Amd()},
      {"IommuNotPassthrough", "two cards behind a translating IOMMU", Amd([](TestTree& t) {
         WriteAmdCard(t, "amdgpu", "0000:04:00.0");
         t.Write("sys/kernel/iommu_groups/1/devices/x", "");
       }),
       Amd([](TestTree& t) {
         WriteAmdCard(t, "amdgpu", "0000:04:00.0");
         t.Write("sys/kernel/iommu_groups/1/devices/x", "")
             .Write("proc/cmdline", "ro iommu=pt quiet\n");
       })},
      {"IommuNotPassthrough", "the group's own type counts", Amd([](TestTree& t) {
         WriteAmdCard(t, "amdgpu", "0000:04:00.0");
         t.Write("sys/kernel/iommu_groups/7/type", "DMA-FQ\n")
             .Write("proc/cmdline", "iommu=pt\n")
             .Link(std::string(kAmdCard) + "iommu_group", "../../../kernel/iommu_groups/7");
       }),
       Amd([](TestTree& t) {
         WriteAmdCard(t, "amdgpu", "0000:04:00.0");
         t.Write("sys/kernel/iommu_groups/7/type", "identity\n")
             .Link(std::string(kAmdCard) + "iommu_group", "../../../kernel/iommu_groups/7");
       })},
      {"IommuNotPassthrough", "one card has no peers", Amd([](TestTree& t) {
         WriteAmdCard(t, "amdgpu", "0000:04:00.0");
         t.Write("sys/kernel/iommu_groups/1/devices/x", "");
       }),
       Amd([](TestTree& t) { t.Write("sys/kernel/iommu_groups/1/devices/x", ""); })},
  };
}

std::vector<Case> ModuleCases() {
  return {
      {"Wsl2", "its kernel's name", Host([](TestTree& t) {
         t.Write("proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2 (root)\n")
             .Write("dev/dxg", "");
       }),
       Host([](TestTree& t) { t.Write("proc/version", "Linux version 5.15.0-1054-azure\n"); })},
      {"DriverNotInstalled", "no module for any kernel", Driverless(Nothing()),
       Driverless([](TestTree& t) { t.Write(kOtherKernel, ""); })},
      {"DriverNotInstalled", "amdgpu too", AmdDriverless(Nothing()), Amd()},
      {"ModuleMissingForKernel", "the kernel was upgraded",
       Driverless([](TestTree& t) { t.Write(kOtherKernel, ""); }), Driverless(Nothing())},
      {"ModuleMissingForKernel", "amdgpu too", AmdDriverless([](TestTree& t) {
         t.Write("lib/modules/6.8.0-40-generic/modules.dep",
                 "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst:\n");
       }),
       AmdDriverless([](TestTree& t) {
         // amdgpu-something is another module.
         t.Write("lib/modules/6.8.0-40-generic/modules.dep", "kernel/misc/xamdgpu.ko-no:\n");
       })},
      {"DkmsBuildFailed", "a source tree without a build", Driverless([](TestTree& t) {
         t.Write("var/lib/dkms/nvidia/580.173.02/build/make.log", "error\n");
       }),
       Driverless([](TestTree& t) {
         t.Write("var/lib/dkms/nvidia/580.173.02/6.8.0-45-generic/x86_64/module/nvidia.ko", "");
       })},
      {"DkmsBuildFailed", "amdgpu too", AmdDriverless([](TestTree& t) {
         t.Write("var/lib/dkms/amdgpu/6.12.12/6.8.0-40-generic/x86_64/x", "");
       }),
       AmdDriverless(Nothing())},
      {"SecureBootRefuses", "the kernel's own line", Driverless([](TestTree& t) {
         t.Write("dev/kmsg", kKeyRejected).Write(kSecureBoot, Bytes("\6\0\0\0\1"));
       }),
       // The same line while the module is at work is about another module.
       Nvidia([](TestTree& t) { t.Write("dev/kmsg", kKeyRejected); })},
      {"SecureBootRefuses", "off is off",
       AmdDriverless([](TestTree& t) { t.Write("dev/kmsg", kKeyRejected); }),
       AmdDriverless([](TestTree& t) {
         t.Write("dev/kmsg", kKeyRejected).Write(kSecureBoot, Bytes("\6\0\0\0\0"));
       })},
      {"DriverNotLoaded", "the file is there", Driverless([](TestTree& t) {
         t.Write("lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko.zst", "");
       }),
       Nvidia()},
      {"DriverNotLoaded", "amdgpu too", AmdDriverless([](TestTree& t) {
         t.Write("lib/modules/6.8.0-45-generic/modules.dep", "kernel/x/amdgpu.ko:\n");
       }),
       Amd()},
      {"DriverLibraryMismatch", "the library was replaced", Nvidia([](TestTree& t) {
         t.Remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
         t.Link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.580.178");
       }),
       Nvidia([](TestTree& t) {
         t.Remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
         t.Write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "");  // it names no version
       })},
      {"DriverUpdatePending", "a newer build waits", Nvidia([](TestTree& t) {
         t.Write("var/lib/dkms/nvidia/580.178/6.8.0-45-generic/x86_64/x", "");
       }),
       Nvidia([](TestTree& t) {
         t.Write("var/lib/dkms/nvidia/580.178/6.8.0-60-generic/x86_64/x", "")
             .Write("var/lib/dkms/nvidia/575.51/6.8.0-45-generic/x86_64/x", "");
       })},
  };
}

std::vector<Case> NodeCases() {
  return {
      {"DeviceNodesMissing", "nobody made the files",
       Nvidia([](TestTree& t) { t.Remove("dev/nvidia0"); }),
       // What a pod does not see is not missing.
       Nvidia([](TestTree& t) { t.Remove("dev"); })},
      {"UvmNodeMissing", "uvm alone", Nvidia([](TestTree& t) { t.Remove("dev/nvidia-uvm"); }),
       Nvidia()},
      {"KfdNodeMissing", "no /dev/kfd", Amd([](TestTree& t) { t.Remove("dev/kfd"); }),
       Amd([](TestTree& t) { t.Remove("dev"); })},
      {"RenderNodeMissing", "no render node",
       Amd([](TestTree& t) { t.Remove("dev/dri/renderD128"); }), Amd()},
      {"DeviceNodeClosed", "root alone",
       Amd([](TestTree& t) { chmod(t.Path("dev/kfd").c_str(), 0600); }), Amd()},
  };
}

Tweak WithFabric(const std::string& state) {
  return Telemetered([state](Telemetry& t) { t.fabric = Reading<std::string>::Of(state); });
}

Change WithSwitch(const std::string& device_class) {
  return [device_class](TestTree& t) {
    t.Write("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n")
        .Write("sys/bus/pci/devices/0000:05:00.0/class", device_class + "\n");
  };
}

std::vector<Case> LibraryCases() {
  return {
      {"FabricManagerDown", "switches and no manager", Nvidia(WithSwitch("0x068000")),
       Nvidia([](TestTree& t) {
         WithSwitch("0x068000")(t);
         t.Write("proc/900/comm", "nv-fabricmanage\n");
       })},
      {"FabricManagerDown", "a bridge is no switch", Nvidia(WithSwitch("0x068000")),
       Nvidia(WithSwitch("0x060400"))},
      {"FabricNotReady", "the library says so", Nvidia({}, WithFabric("not started")),
       Nvidia({}, WithFabric("completed"))},
      {"RocmMissing", "only the kernel's driver", Amd([](TestTree& t) { t.Remove("opt"); }),
       Amd([](TestTree& t) {
         t.Remove("opt");
         t.Remove("usr");
       })},
      {"IntegratedGpuOnly", "a processor's GPU", Amd({}, {}, "110003"), Amd()},
      {"UnsupportedGfx", "not in this release", Amd({}, {}, "90500"),
       Amd([](TestTree& t) { t.Write("opt/rocm/.info/version", "7.0.1\n"); }, {}, "90500")},
      {"DeprecatedGfx", "on its way out",
       Amd([](TestTree& t) { t.Write("opt/rocm/.info/version", "6.2.4\n"); }, {}, "90006"), Amd()},
      {"HsaOverrideSet", "for everybody", Amd([](TestTree& t) {
         t.Write("etc/environment", "PATH=/bin\nHSA_OVERRIDE_GFX_VERSION=11.0.0\n");
       }),
       Amd([](TestTree& t) {
         t.Write("etc/environment", "#HSA_OVERRIDE_GFX_VERSION=11.0.0\nHSA_OVERRIDE_GFX=1\n");
       })},
      {"HsaOverrideSet", "in a process", Amd([](TestTree& t) {
         t.Write("proc/77/comm", "python3\n")
             .Write("proc/77/environ", Bytes("A=1\0HSA_OVERRIDE_GFX_VERSION_1=10.3.0\0B=2\0"));
       }),
       // Not of AMD: of no meaning.
       Nvidia([](TestTree& t) {
         t.Write("proc/77/comm", "python3\n")
             .Write("proc/77/environ", Bytes("HSA_OVERRIDE_GFX_VERSION=10.3.0\0"));
       })},
  };
}

Tweak UsedBy(std::int64_t pid) {
  return Telemetered([pid](Telemetry& t) {
    t.processes = Reading<std::vector<GpuProcess>>::Of({GpuProcess{pid, 1}});
  });
}

Change WithProcess(const std::string& name, const std::string& cgroup) {
  return [name, cgroup](TestTree& t) {
    t.Write("proc/50/comm", "kubelet\n")
        .Write("proc/77/comm", name + "\n")
        .Write("proc/77/cgroup", "0::" + cgroup + "\n");
  };
}

std::vector<Case> ContainerCases() {
  const Machine stale_library = Nvidia([](TestTree& t) {
    t.Write("etc/cdi/nvidia.yaml",
            "kind: nvidia.com/gpu\n/dev/nvidia0\n/usr/lib/libcuda.so.575.51.03\n");
  });
  const Machine stale_count = Nvidia([](TestTree& t) {
    t.Write("etc/cdi/nvidia.yaml", "nvidia.com/gpu\n/dev/nvidia0\n/dev/nvidia1\n");
  });
  return {
      {"ContainerToolkitMissing", "containers without it",
       Nvidia([](TestTree& t) { t.Remove("usr/bin/nvidia-ctk"); }), Nvidia([](TestTree& t) {
         t.Remove("usr/bin/nvidia-ctk");
         t.Remove("usr/bin/containerd");
       })},
      {"CdiSpecMissing", "nothing names the GPUs", Nvidia([](TestTree& t) { t.Remove("etc/cdi"); }),
       Nvidia([](TestTree& t) {
         t.Remove("etc/cdi");
         t.Write("etc/containerd/config.toml", "[runtimes.nvidia]\n");
       })},
      {"CdiSpecStale", "libraries of another driver", stale_library, Nvidia()},
      {"CdiSpecStale", "another number of GPUs", stale_count, Nvidia([](TestTree& t) {
         // nvidiactl and nvidia-uvm are no GPUs.
         t.Write("etc/cdi/nvidia.yaml",
                 "nvidia.com/gpu\n/dev/nvidia0\n/dev/nvidiactl\n/dev/nvidia-uvm\n");
       })},
      {"RuntimeNewerThanDriver", "another major version",
       Nvidia([](TestTree& t) { t.Write("usr/local/cuda-14.0/version.json", "{}"); }),
       Nvidia([](TestTree& t) { t.Write("usr/local/cuda-12.4/version.json", "{}"); })},
      {"RuntimeNewerThanDriver", "ROCm ahead of the driver", Amd([](TestTree& t) {
         t.Write("sys/module/amdgpu/version", "6.8.5\n").Write("opt/rocm/.info/version", "7.2.0\n");
       }),
       Amd()},
      {"MinorVersionCompatibility", "a minor version ahead",
       Nvidia([](TestTree& t) { t.Write("usr/local/cuda-13.2/version.json", "{}"); }),
       Nvidia([](TestTree& t) { t.Write("usr/local/cuda-13.0/version.json", "{}"); })},
      {"ForeignProcess", "outside of every pod",
       Amd(WithProcess("python3", "/user.slice/user-1000.slice"), UsedBy(77)),
       Amd(WithProcess("python3", "/kubepods.slice/kubepods-pod1.slice"), UsedBy(77))},
      {"ForeignProcess", "the node's own programs stay",
       Nvidia(WithProcess("python3", "/user.slice"), UsedBy(77)),
       Nvidia(WithProcess("nv-hostengine", "/system.slice"), UsedBy(77))},
      {"FrameworkForOtherVendor", "a CUDA build", Amd([](TestTree& t) {
         t.Write("usr/local/lib/python3.12/dist-packages/torch/version.py",
                 "__version__ = '2.7.0+cu128'\n");
       }),
       Amd([](TestTree& t) {
         t.Write("usr/local/lib/python3.12/dist-packages/torch/version.py",
                 "__version__ = '2.7.0+rocm6.4'\n");
       })},
  };
}

Tweak Loaded(std::int64_t percent) {
  return [percent](Inventory& inventory) {
    Device& gpu = inventory.devices.at(0);
    gpu.link_generation = Reading<std::int64_t>::Of(3);
    gpu.link_generation_max = Reading<std::int64_t>::Of(5);
    inventory.telemetry[gpu.id.value].utilization_percent = Reading<std::int64_t>::Of(percent);
  };
}

Tweak Recovery(const std::string& action) {
  return Telemetered(
      [action](Telemetry& t) { t.recovery_action = Reading<std::string>::Of(action); });
}

Change Aer(const std::string& kind, const std::string& text) {
  return [kind, text](TestTree& t) { t.Write(kAmdCard + ("aer_dev_" + kind), text); };
}

Change PowerCap(const std::string& watts) {
  return [watts](TestTree& t) {
    const std::string folder = std::string(kAmdCard) + "hwmon/hwmon3/";
    t.Write(folder + "power1_cap", watts + "000000\n")
        .Write(folder + "power1_cap_default", "750000000\n");
  };
}

std::vector<Case> HealthCases() {
  return {
      {"RecoveryActionNeeded", "the driver asks", Nvidia({}, Recovery("reset")),
       Nvidia({}, Recovery("none"))},
      {"LinkSpeedReduced", "under load", Nvidia({}, Loaded(90)), Nvidia({}, Loaded(3))},
      {"AerFatal", "counted", Amd(Aer("fatal", "Undefined 0\nTOTAL_ERR_FATAL 2\n")),
       Amd(Aer("fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n"))},
      {"AerNonfatal", "counted", Amd(Aer("nonfatal", "TOTAL_ERR_NONFATAL 1\n")),
       Amd(Aer("nonfatal", "garbage\n"))},
      {"AerCorrectable", "very many", Amd(Aer("correctable", "RxErr 9\nTOTAL_ERR_COR 40000\n")),
       Amd(Aer("correctable", "RxErr 9\nTOTAL_ERR_COR 9\n"))},
      {"ThermalThrottle", "too hot", Amd({}, Throttled("hardware-thermal")),
       Amd({}, Throttled("power-cap"))},
      // A laptop was recorded whose driver claims so at 54 C.
      {"ThermalThrottle", "not while it is cool", Nvidia({}, Throttled("thermal")),
       Nvidia({}, Throttled("thermal", 54))},
      {"PowerBrake", "the machine brakes", Nvidia({}, Throttled("power-brake")),
       Nvidia({}, Throttled("thermal"))},
      {"PowerCapped", "at its limit", Nvidia({}, Throttled("power-cap")),
       Nvidia({}, Throttled("power-brake"))},
      {"PowerCapLowered", "below the default", Amd(PowerCap("400")), Amd(PowerCap("750"))},
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (auto part :
       {BusCases(), ModuleCases(), NodeCases(), LibraryCases(), ContainerCases(), HealthCases()}) {
    for (Case& one : part) all.push_back(std::move(one));
  }
  return all;
}

std::set<std::string> Codes(const Diagnosis& diagnosis) {
  std::set<std::string> codes;
  for (const Finding& finding : diagnosis.findings) codes.insert(finding.code);
  return codes;
}

TEST(RuleCasesTest, EachRuleFiresOnItsMachineAndNotOnTheNearMiss) {
  for (const Case& one : AllCases()) {
    SCOPED_TRACE(one.code + ": " + one.what);
    const Diagnosis found = Check(one.fires);
    const Finding* finding = FindCode(found.findings, one.code);
    EXPECT_NE(finding, nullptr) << testing::PrintToString(Codes(found));
    if (finding != nullptr) {
      EXPECT_FALSE(finding->evidence.empty());
      EXPECT_FALSE(finding->remedy.empty());
      EXPECT_FALSE(finding->documentation.empty());
    }
    const Diagnosis missed = Check(one.near_miss);
    EXPECT_EQ(FindCode(missed.findings, one.code), nullptr);
  }
}

// Opening a device file is a question of the process; no tree can refuse root.
const std::set<std::string> kNeedTheMachine = {"DevicePermission", "DeviceCgroupRefuses"};

TEST(RuleCasesTest, WhatThisProcessMayNotOpen) {
  for (const auto& [answer, code] : std::map<std::string, std::string>{
           {"denied", "DevicePermission"}, {"refused", "DeviceCgroupRefuses"}, {"ok", ""}}) {
    Observations seen;
    seen.Set("open.kfd", answer, "open /dev/kfd: it says why");
    const auto found = Evaluate(Rules(), seen);
    EXPECT_EQ(found.size(), code.empty() ? 0u : 1u) << answer;
    if (!found.empty()) {
      EXPECT_EQ(found[0].code, code);
      EXPECT_EQ(found[0].evidence, "open /dev/kfd: it says why");
    }
  }
}

TEST(RuleCasesTest, NoRuleIsWithoutItsCase) {
  std::map<std::string, int> rows;
  for (const Rule& rule : Rules()) {
    if (!rule.when.empty() && !kNeedTheMachine.contains(rule.code)) ++rows[rule.code];
  }
  for (const Case& one : AllCases()) --rows[one.code];
  for (const auto& [code, left] : rows) EXPECT_LE(left, 0) << code << " needs a case for each row";
}

TEST(RuleCasesTest, HealthyMachinesHaveNoTrouble) {
  EXPECT_THAT(Troubles(Check(Nvidia())), IsEmpty());
  EXPECT_THAT(Troubles(Check(Amd())), IsEmpty());
  EXPECT_THAT(Codes(Check(Nvidia())), IsEmpty());
  EXPECT_THAT(Codes(Check(Amd())), IsEmpty());
}

// What is broken further down explains what is missing above: one finding, not four.
TEST(RuleCasesTest, TheCauseAloneIsTold) {
  EXPECT_EQ(Troubles(Check(Host([](TestTree& t) { WriteNvidiaCard(t, "nouveau"); }))),
            (std::set<std::string>{"NouveauBound"}));
  EXPECT_EQ(Troubles(Check(Driverless([](TestTree& t) { t.Write(kOtherKernel, ""); }))),
            (std::set<std::string>{"ModuleMissingForKernel"}));
  EXPECT_EQ(Troubles(Check(Driverless([](TestTree& t) { t.Write("dev/kmsg", kKeyRejected); }))),
            (std::set<std::string>{"SecureBootRefuses"}));
  EXPECT_EQ(Troubles(Check(AmdDriverless(Nothing()))),
            (std::set<std::string>{"DriverNotInstalled"}));
}

// Less to see is never more health: no rule that looks at the software fires, and it is said.
TEST(RuleCasesTest, APodSeesLessAndSaysSo) {
  const Diagnosis found = Check(Nvidia([](TestTree& t) {
    for (const char* part : {"dev", "lib", "usr", "etc", "var", "proc/1"}) t.Remove(part);
  }));
  EXPECT_THAT(Troubles(found), IsEmpty());
  ASSERT_NE(FindCode(found.findings, "NotLookedAt"), nullptr);
  EXPECT_EQ(found.not_seen.size(), 6u);
}

}  // namespace
}  // namespace bimetal::agent
