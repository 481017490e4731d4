#include "tests/machines/render.h"

#include <algorithm>

#include "agent/devices/sha256.h"
#include "core/base/log.h"

namespace bimetal::machines {
namespace {

// 8-4-4-4-12 with version 4 and variant 8.
std::string UuidOf(std::string_view words) {
  std::string hex = Digits(words, 32);
  hex[12] = '4';
  hex[16] = '8';
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

std::string Text(std::string_view value) {
  std::string out = "\"";
  AppendJsonEscaped(out, value);
  return out + "\"";
}

bool IsSlow(Fault::Kind kind) {
  return kind == Fault::Kind::kSlowMemory || kind == Fault::Kind::kSlowHost ||
         kind == Fault::Kind::kSlowLink || kind == Fault::Kind::kSlowCompute;
}

std::string FaultJson(const Fault& fault) {
  std::string out = "{\"kind\":" + Text(FaultKindName(fault.kind));
  if (fault.kind == Fault::Kind::kMemory) {
    out += ",\"offset\":" + std::to_string(fault.offset) + ",\"bit\":" + std::to_string(fault.bit) +
           ",\"stuck\":" + std::to_string(fault.stuck);
  }
  if (fault.kind == Fault::Kind::kCompute) out += ",\"unit\":" + std::to_string(fault.unit);
  if (fault.kind == Fault::Kind::kErrors) out += ",\"count\":" + std::to_string(fault.count);
  if (IsSlow(fault.kind)) out += ",\"percent\":" + std::to_string(fault.percent);
  if (fault.kind == Fault::Kind::kHang && !fault.call.empty()) {
    out += ",\"call\":" + Text(fault.call);
  }
  return out + "}";
}

// ,"rates":{...}; nothing where none is claimed.
std::string RatesJson(const ClaimedRates& rates) {
  std::string out;
  for (const auto& [check, rate] : rates) {
    out += (out.empty() ? "" : ",") + Text(check) + ":{\"value\":" + std::to_string(rate.value) +
           ",\"noisePercent\":" + std::to_string(rate.noise_percent) + "}";
  }
  return out.empty() ? "" : ",\"rates\":{" + out + "}";
}

// The faults of a GPU that reach partition `part` of `parts`, in the partition's own addresses.
std::vector<Fault> FaultsOfPart(const Gpu& gpu, int part, int parts) {
  std::vector<Fault> out;
  const std::int64_t bytes = gpu.group->memory_bytes / parts;
  const std::int64_t units = gpu.group->compute_units / parts;
  for (Fault fault : gpu.faults) {
    if (fault.kind == Fault::Kind::kXid || fault.kind == Fault::Kind::kEcc) continue;
    if (fault.kind == Fault::Kind::kMemory) {
      if (fault.offset / bytes != part) continue;
      fault.offset %= bytes;
    }
    if (fault.kind == Fault::Kind::kCompute) {
      if (fault.unit / units != part) continue;
      fault.unit %= units;
    }
    out.push_back(fault);
  }
  return out;
}

void AddAmdDevices(const Gpu& gpu, std::vector<SimulatedDevice>& out) {
  const int parts = gpu.group->partitions;
  for (int part = 0; part < parts; ++part) {
    SimulatedDevice device;
    device.id = "GPU-" + gpu.unique + (parts > 1 ? "-p" + std::to_string(part) : "");
    device.vendor = "amd";
    device.name = gpu.group->model;
    device.arch = gpu.group->arch;
    device.compute_units = gpu.group->compute_units / parts;
    device.memory_bytes = gpu.group->memory_bytes / parts;
    device.pci_address = gpu.pci;
    if (parts > 1) device.pci_address.back() = static_cast<char>('0' + part);
    device.faults = FaultsOfPart(gpu, part, parts);
    out.push_back(std::move(device));
  }
}

void AddNvidiaDevices(const Gpu& gpu, std::vector<SimulatedDevice>& out) {
  SimulatedDevice device{"GPU-" + gpu.unique,
                         "nvidia",
                         gpu.group->model,
                         gpu.group->arch,
                         gpu.group->compute_units,
                         gpu.group->memory_bytes,
                         gpu.pci,
                         FaultsOfPart(gpu, 0, 1)};
  if (gpu.group->mig.empty()) {
    out.push_back(std::move(device));
    return;
  }
  for (std::size_t i = 0; i < gpu.group->mig.size(); ++i) {
    SimulatedDevice instance = device;
    instance.id = MigUuid(gpu, i);
    instance.compute_units = gpu.group->mig[i].compute_units;
    instance.memory_bytes = gpu.group->mig[i].memory_bytes;
    instance.pci_address.clear();
    std::erase_if(instance.faults, [&](const Fault& f) {
      return (f.kind == Fault::Kind::kMemory && f.offset > instance.memory_bytes - 8) ||
             (f.kind == Fault::Kind::kCompute && f.unit >= instance.compute_units);
    });
    out.push_back(std::move(instance));
  }
}

// The kernel log as /dev/kmsg has it: a first line, then one line for each Xid that was put in.
std::string KernelLog(const Description& description, const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::int64_t, std::string>> lines;
  for (const Gpu& gpu : gpus) {
    for (const Fault& fault : gpu.faults) {
      if (fault.kind != Fault::Kind::kXid) continue;
      std::string text = "NVRM: Xid (PCI:" + gpu.pci.substr(0, gpu.pci.rfind('.')) +
                         "): " + std::to_string(fault.code) + ", pid='<unknown>', name=<unknown>, ";
      text += fault.code == 79 ? "GPU has fallen off the bus." : "simulated.";
      lines.emplace_back(fault.sequence, std::move(text));
    }
  }
  std::sort(lines.begin(), lines.end());
  std::string out = "6,1,0,-;Linux version " + description.kernel + " (simulated machine)\n";
  for (const auto& [sequence, text] : lines) {
    out += "4," + std::to_string(sequence) + "," + std::to_string(sequence * 1'000'000) + ",-;" +
           text + "\n";
  }
  return out;
}

}  // namespace

bool Gpu::Has(Fault::Kind kind) const { return Find(kind) != nullptr; }

const Fault* Gpu::Find(Fault::Kind kind) const {
  const auto found = std::find_if(faults.begin(), faults.end(),
                                  [&](const Fault& fault) { return fault.kind == kind; });
  return found == faults.end() ? nullptr : &*found;
}

std::string Digits(std::string_view words, std::size_t n) {
  return agent::Sha256Hex("bimetal-machine|" + std::string(words)).substr(0, n);
}

std::string CpuList(int numa) {
  return std::to_string(numa * kCpusOfNode) + "-" + std::to_string((numa + 1) * kCpusOfNode - 1);
}

std::vector<Gpu> GpusOf(const Description& description, const State& state) {
  std::vector<Gpu> gpus;
  for (const GpuGroup& group : description.groups) {
    for (int i = 0; i < group.count; ++i) {
      Gpu gpu;
      gpu.group = &group;
      gpu.index = static_cast<std::size_t>(i);
      gpu.number = static_cast<int>(gpus.size());
      gpu.pci = group.pci[gpu.index];
      const std::string words = group.vendor + "|" + state.node + "|" + std::to_string(state.seed) +
                                "|" + std::to_string(gpu.number);
      gpu.unique = group.vendor == "amd" ? "5" + Digits("id|" + words, 15) : UuidOf("id|" + words);
      gpu.serial = "SIM" + Digits("serial|" + words, 10);
      gpu.numa = i * description.numa_nodes / group.count;
      for (const Fault& fault : state.faults) {
        if (fault.device == gpu.number) gpu.faults.push_back(fault);
      }
      gpus.push_back(std::move(gpu));
    }
  }
  return gpus;
}

Tree RenderMachine(const Description& description, const State& state, const std::string& nvml) {
  Tree tree;
  const std::vector<Gpu> gpus = GpusOf(description, state);
  const auto text = [&](const std::string& path, std::string value) {
    tree[path] = {File::Kind::kText, std::move(value)};
  };
  text("simulated", "machine " + description.name + ", node " + state.node + "\n");
  text("proc/sys/kernel/osrelease", description.kernel + "\n");
  text("proc/sys/kernel/random/boot_id",
       UuidOf("boot|" + state.node + "|" + std::to_string(state.seed) + "|" +
              std::to_string(state.boots)) +
           "\n");
  text("dev/kmsg", KernelLog(description, gpus));
  text("devices.json", DevicesJson(DevicesOf(description, state)));
  std::vector<Gpu> amd;
  std::vector<Gpu> nvidia;
  for (const Gpu& gpu : gpus) (gpu.group->vendor == "amd" ? amd : nvidia).push_back(gpu);
  if (!amd.empty()) RenderAmd(description, state, amd, tree);
  if (!nvidia.empty()) RenderNvidia(nvidia, nvml, tree);
  for (const auto& [path, value] : description.files) text(path, value + "\n");
  return tree;
}

std::vector<SimulatedDevice> DevicesOf(const Description& description, const State& state) {
  std::vector<SimulatedDevice> devices;
  for (const Gpu& gpu : GpusOf(description, state)) {
    const std::size_t before = devices.size();
    gpu.group->vendor == "amd" ? AddAmdDevices(gpu, devices) : AddNvidiaDevices(gpu, devices);
    for (std::size_t i = before; i < devices.size(); ++i) devices[i].rates = gpu.group->rates;
  }
  return devices;
}

std::string DevicesJson(const std::vector<SimulatedDevice>& devices) {
  std::string out = "{\"simulated\":true,\"devices\":[";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const SimulatedDevice& d = devices[i];
    out += std::string(i == 0 ? "\n " : ",\n ") + "{\"id\":" + Text(d.id) +
           ",\"vendor\":" + Text(d.vendor) + ",\"name\":" + Text(d.name) +
           ",\"arch\":" + Text(d.arch) + ",\"computeUnits\":" + std::to_string(d.compute_units) +
           ",\"memoryBytes\":" + std::to_string(d.memory_bytes) +
           ",\"pciAddress\":" + Text(d.pci_address) + ",\"faults\":[";
    for (std::size_t k = 0; k < d.faults.size(); ++k) {
      out += (k == 0 ? "" : ",") + FaultJson(d.faults[k]);
    }
    out += "]" + RatesJson(d.rates) + "}";
  }
  return out + "\n]}\n";
}

std::string MigUuid(const Gpu& gpu, std::size_t instance) {
  return "MIG-" + UuidOf("mig|" + gpu.unique + "|" + std::to_string(instance));
}

}  // namespace bimetal::machines
