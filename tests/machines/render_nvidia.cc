#include <array>
#include <cstdio>

#include "tests/machines/render.h"

namespace bimetal::machines {
namespace {

// fp32 lanes of one multiprocessor.
std::int64_t CoresPerUnit(const std::string& arch) {
  return arch == "sm_70" || arch == "sm_75" || arch == "sm_80" ? 64 : 128;
}

// sm_90 as 9.0, sm_120 as 12.0.
std::string Capability(const std::string& arch) {
  const std::string digits = arch.substr(3);
  if (digits.size() < 2) return "0.0";
  return digits.substr(0, digits.size() - 1) + "." + digits.back();
}

// "13.0" as 13000.
std::string CudaNumber(const std::string& version) {
  int major = 0;
  int minor = 0;
  std::sscanf(version.c_str(), "%d.%d", &major, &minor);
  return std::to_string(major * 1000 + minor * 10);
}

std::string Firmware(const GpuGroup& group, const std::string& name) {
  const auto found = group.firmware.find(name);
  return found == group.firmware.end() ? "N/A" : found->second;
}

// "0x233010de", as the library has vendor and device in one word.
std::string PciId(const GpuGroup& group) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "0x%04x10de", static_cast<unsigned>(group.pci_device));
  return text.data();
}

// The library's answers of one GPU, by query.
std::map<std::string, std::string> Answers(const Gpu& gpu) {
  const GpuGroup& group = *gpu.group;
  std::map<std::string, std::string> out = {
      {"name", group.model},
      {"uuid", "GPU-" + gpu.unique},
      {"serial", gpu.serial},
      {"minor", std::to_string(gpu.number)},
      {"pci", gpu.pci},
      {"memory", std::to_string(group.memory_bytes)},
      {"cores", std::to_string(group.compute_units * CoresPerUnit(group.arch))},
      {"capability", Capability(group.arch)},
      {"ecc", "1"},
      {"ecc_uncorrected", "0"},
      {"ecc_corrected", "0"},
      {"remapped", "0 0 0 0"},
      {"mig", group.mig.empty() ? "0" : "1"},
      {"pci_id", PciId(group)},
      {"temperature", "31"},
      {"memory_temperature", "35"},
      {"power", "70000"},
      {"power_limit", "700000"},
      {"energy", "123456789"},
      {"clock 0", "345"},
      {"clock 2", "2619"},
      {"clock_reasons", "1"},
      {"replays", "0"},
      {"recovery_action", "0"},
      {"processes", "none"},
      {"utilization", "0"},
      {"link_generation", std::to_string(group.link_generation)},
      {"link_generation_max", std::to_string(group.link_generation)},
      {"link_width", std::to_string(group.link_width)},
      {"link_width_max", std::to_string(group.link_width)}};
  for (int link = 0; link < group.nvlinks; ++link) {
    // Four switches, as an HGX board has them; none of them is a GPU of the machine.
    out["nvlink " + std::to_string(link)] = "1 0000:0" + std::to_string(link % 4 + 4) + ":00.0";
  }
  if (group.nvlinks > 0) out["fabric"] = "3";
  for (const auto& [name, version] : group.firmware) out[name] = version;
  for (const int device : {-1, static_cast<int>(gpu.index)}) {
    const auto overrides = group.answers.find(device);
    if (overrides == group.answers.end()) continue;
    for (const auto& [query, answer] : overrides->second) out[query] = answer;
  }
  if (const Fault* ecc = gpu.Find(Fault::Kind::kEcc)) {
    out["ecc_uncorrected"] = std::to_string(ecc->count);
  }
  if (gpu.Has(Fault::Kind::kVanish)) out["state"] = "lost";
  const Fault* hang = gpu.Find(Fault::Kind::kHang);
  // With a call it is the validation program's alone.
  if (hang != nullptr && hang->call.empty()) out["state"] = "hang";
  return out;
}

std::string NvmlText(const std::vector<Gpu>& gpus) {
  const GpuGroup& group = *gpus.at(0).group;
  std::string out = "# Answers of the simulated libnvidia-ml.so.1 beside this file.\n";
  out += "system driver " + group.driver + "\nsystem nvml 13." + group.driver + "\n";
  out += "system cuda " + CudaNumber(group.runtime) + "\n";
  out += "system count " + std::to_string(gpus.size()) + "\n";
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    const Gpu& gpu = gpus[index];
    const std::string number = std::to_string(index);
    for (const auto& [query, answer] : Answers(gpu)) {
      out += "device " + number + " " + query + " " + answer + "\n";
    }
    for (std::size_t i = 0; i < gpu.group->mig.size(); ++i) {
      const MigInstance& instance = gpu.group->mig[i];
      const std::string prefix = "mig " + number + " " + std::to_string(i) + " ";
      out += prefix + "uuid " + MigUuid(gpu, i) + "\n";
      out += prefix + "name " + gpu.group->model + " MIG " + instance.profile + "\n";
      out += prefix + "memory " + std::to_string(instance.memory_bytes) + "\n";
      out += prefix + "multiprocessors " + std::to_string(instance.compute_units) + "\n";
    }
  }
  return out;
}

void RenderGpu(const Gpu& gpu, Tree& tree) {
  const auto text = [&](const std::string& path, const std::string& value) {
    tree[path] = {File::Kind::kText, value + "\n"};
  };
  const GpuGroup& group = *gpu.group;
  std::array<char, 16> id;
  std::snprintf(id.data(), id.size(), "%04x", static_cast<unsigned>(group.pci_device));
  const std::string folder = "sys/bus/pci/devices/" + gpu.pci + "/";
  text(folder + "vendor", "0x10de");
  text(folder + "device", std::string("0x") + id.data());
  text(folder + "class", "0x030200");
  text(folder + "uevent", std::string("DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:") + id.data() +
                              "\nPCI_SLOT_NAME=" + gpu.pci);
  text(folder + "numa_node", std::to_string(gpu.numa));
  text(folder + "local_cpulist", CpuList(gpu.numa));
  tree[folder + "driver"] = {File::Kind::kLink, "../../drivers/nvidia"};
  text("proc/driver/nvidia/gpus/" + gpu.pci + "/information",
       "Model: \t\t " + group.model + "\nIRQ:   \t\t 42\nGPU UUID: \t GPU-" + gpu.unique +
           "\nVideo BIOS: \t " + Firmware(group, "vbios") +
           "\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff"
           "\nBus Location: \t " +
           gpu.pci + "\nDevice Minor: \t " + std::to_string(gpu.number) + "\nGPU Firmware: \t " +
           Firmware(group, "gsp") + "\nGPU Excluded:\t No");
}

}  // namespace

void RenderNvidia(const std::vector<Gpu>& gpus, const std::string& nvml, Tree& tree) {
  const std::string& driver = gpus.at(0).group->driver;
  tree["sys/module/nvidia/version"] = {File::Kind::kText, driver + "\n"};
  tree["proc/driver/nvidia/version"] = {
      File::Kind::kText,
      std::string("NVRM version: NVIDIA UNIX ") +
          (gpus.at(0).group->flavor == "proprietary" ? "x86_64 Kernel Module  "
                                                     : "Open Kernel Module for x86_64  ") +
          driver + "  Release Build  (simulated)\n"};
  const std::string& toolkit = gpus.at(0).group->toolkit;
  if (!toolkit.empty()) {
    tree["usr/lib/x86_64-linux-gnu/libnvidia-container.so." + toolkit] = {
        File::Kind::kText, "simulated, by its name alone\n"};
  }
  for (const Gpu& gpu : gpus) RenderGpu(gpu, tree);
  tree["machine/nvml.txt"] = {File::Kind::kText, NvmlText(gpus)};
  tree["usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"] = {File::Kind::kCopy, nvml};
}

}  // namespace bimetal::machines
