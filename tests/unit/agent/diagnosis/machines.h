#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "agent/devices/root_files.h"
#include "agent/diagnosis/diagnose.h"
#include "tests/unit/agent/devices/test_tree.h"

// Small machines in which nothing is wrong, to be broken by tests. All of it is made up.
namespace bimetal::agent {

inline constexpr char kKernel[] = "6.8.0-45-generic";
inline constexpr char kNvidiaAt[] = "0000:01:00.0";
inline constexpr char kAmdAt[] = "0000:03:00.0";
inline constexpr char kAmdId[] = "GPU-fa5e0000000000a1";

inline void WriteHost(TestTree& tree) {
  tree.Write("proc/sys/kernel/osrelease", std::string(kKernel) + "\n")
      .Write("proc/sys/kernel/random/boot_id", "fa5e0000-0000-4000-8000-000000000001\n")
      .Write("proc/version", "Linux version 6.8.0-45-generic (gcc)\n")
      .Write("proc/cmdline", "root=/dev/sda1 ro quiet\n")
      .Write("proc/1/comm", "systemd\n")
      .Write("proc/1/cgroup", "0::/init.scope\n")
      .Write("proc/1/environ", "PATH=/bin")
      .Write("dev/null", "")
      .Write("dev/kmsg", "6,1,0,-;Linux version 6.8.0-45-generic\n")
      .Write("etc/os-release", "ID=debian\n")
      .Write("usr/bin/ls", "")
      .Write("var/lib/dpkg/status", "\n")
      .Write("sys/module/loop/initstate", "live\n")
      .Write("lib/modules/6.8.0-45-generic/modules.dep",
             "kernel/drivers/net/dummy.ko.zst:\n"
             "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst: x\n"
             "updates/dkms/nvidia.ko.zst:\n");
}

inline void WriteNvidiaCard(TestTree& tree, const std::string& driver = "nvidia",
                            const std::string& address = kNvidiaAt) {
  const std::string folder = "sys/bus/pci/devices/" + address + "/";
  tree.Write(folder + "vendor", "0x10de\n")
      .Write(folder + "device", "0x2330\n")
      .Write(folder + "class", "0x030200\n")
      .Write(folder + "uevent", (driver.empty() ? "" : "DRIVER=" + driver + "\n") +
                                    "PCI_ID=10DE:2330\nPCI_SLOT_NAME=" + address + "\n");
}

// One H100 with driver 580.173.02, containers and a CDI specification.
inline void WriteNvidia(TestTree& tree) {
  WriteHost(tree);
  WriteNvidiaCard(tree);
  tree.Write("sys/module/nvidia/version", "580.173.02\n")
      .Write("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23\n")
      .Write("proc/driver/nvidia/gpus/0000:01:00.0/information",
             "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-fa5e0000-1\n"
             "Device Minor: \t 0\nGPU Excluded:\t No\n")
      .Write("dev/nvidiactl", "")
      .Write("dev/nvidia0", "")
      .Write("dev/nvidia-uvm", "")
      .Write("usr/bin/containerd", "")
      .Write("usr/bin/nvidia-ctk", "")
      .Link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.580.173.02")
      .Write("var/lib/dkms/nvidia/580.173.02/6.8.0-45-generic/x86_64/log/make.log", "")
      .Write(
          "etc/cdi/nvidia.yaml",
          "kind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n  deviceNodes: [{path: /dev/nvidia0}]\n"
          "mounts: [{hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.173.02}]\n");
}

inline void WriteAmdCard(TestTree& tree, const std::string& driver = "amdgpu",
                         const std::string& address = kAmdAt) {
  const std::string folder = "sys/bus/pci/devices/" + address + "/";
  tree.Write(folder + "vendor", "0x1002\n")
      .Write(folder + "device", "0x74a1\n")
      .Write(folder + "class", "0x120000\n")
      .Write(folder + "unique_id", "fa5e0000000000a1\n")
      .Write(folder + "mem_info_vram_total", "206141652992\n")
      .Write(folder + "uevent", (driver.empty() ? "" : "DRIVER=" + driver + "\n") +
                                    "PCI_ID=1002:74A1\nPCI_SLOT_NAME=" + address + "\n");
}

// One MI300X with the DKMS driver of ROCm 6.4; `gfx` as KFD counts it.
inline void WriteAmd(TestTree& tree, const std::string& gfx = "90402") {
  WriteHost(tree);
  WriteAmdCard(tree);
  const std::string card = "sys/bus/pci/devices/0000:03:00.0/";
  const std::string kfd = "sys/class/kfd/kfd/topology/";
  tree.Write(card + "drm/renderD128/dev", "226:128\n")
      .Write("sys/module/amdgpu/initstate", "live\n")
      .Write("sys/module/amdgpu/version", "6.12.12\n")
      .Write("opt/rocm/.info/version", "6.4.0-47\n")
      .Write(kfd + "generation_id", "1\n")
      .Write(kfd + "nodes/0/gpu_id", "0\n")
      .Write(kfd + "nodes/0/properties", "simd_count 0\n")
      .Write(kfd + "nodes/1/gpu_id", "7\n")
      .Write(kfd + "nodes/1/properties",
             "simd_count 1216\nsimd_per_cu 4\nvendor_id 4098\ndevice_id 29857\nlocation_id 768\n"
             "domain 0\ndrm_render_minor 128\nunique_id 18040857157292785825\n"
             "gfx_target_version " +
                 gfx + "\n")
      .Write(kfd + "nodes/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 206141652992\n")
      .Write("dev/kfd", "")
      .Write("dev/dri/renderD128", "");
  chmod(tree.Path("dev/kfd").c_str(), 0666);
}

// The inventory of a tree. No test has NVIDIA's library, which alone knows the memory's size.
inline Inventory InventoryOf(const std::string& root) {
  Inventory inventory = ReadTree(root);
  inventory.kernel = RootFiles(root).Text("proc/sys/kernel/osrelease");
  std::set<std::string> nvidia;
  for (const Device& device : inventory.devices) {
    if (device.vendor == Vendor::kNvidia) nvidia.insert(device.id.value);
  }
  std::erase_if(inventory.findings, [&](const Finding& finding) {
    return finding.code == "VendorLibraryMissing" ||
           (finding.code == "MemorySizeUnknown" && nvidia.contains(finding.device));
  });
  return inventory;
}

inline Diagnosis DiagnoseTree(const TestTree& tree, const DiagnoseOptions& options = {}) {
  return Diagnose(tree.root(), InventoryOf(tree.root()), options);
}

// The codes of what is worth a warning.
inline std::set<std::string> Troubles(const Diagnosis& diagnosis) {
  std::set<std::string> codes;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.severity != Severity::kInfo) codes.insert(finding.code);
  }
  return codes;
}

}  // namespace bimetal::agent
