#include "agent/devices/nvidia/nvml_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "agent/devices/nvidia/nvml_asker.h"
#include "agent/devices/nvidia/nvml_telemetry.h"
#include "agent/devices/nvidia/proc.h"

namespace bimetal::agent {
namespace {

using Number = Reading<std::int64_t>;
using Text = Reading<std::string>;

// SMs by CUDA cores: cores an SM are fixed by compute capability (CUDA programming guide, table of
// arithmetic throughput, fp32 lanes).
Number Multiprocessors(const Number& cores, const Text& architecture) {
  if (!cores.known()) return cores;
  if (!architecture.known()) return SameGap<std::int64_t>(architecture);
  static const std::map<std::string, std::int64_t> kCoresPerUnit = {
      {"sm_70", 64},   {"sm_72", 64},   {"sm_75", 64},  {"sm_80", 64},   {"sm_86", 128},
      {"sm_87", 128},  {"sm_89", 128},  {"sm_90", 128}, {"sm_100", 128}, {"sm_103", 128},
      {"sm_110", 128}, {"sm_120", 128}, {"sm_121", 128}};
  const auto found = kCoresPerUnit.find(architecture.value);
  if (found == kCoresPerUnit.end()) {
    return Number::Unknown("cores of one SM are not known for " + architecture.value);
  }
  return Number::Of(cores.value / found->second);
}

void ReadFirmware(NvmlAsker& ask, const nvml::Api& api, Device& device) {
  std::map<std::string, std::string> blocks;
  const Text vbios = ask.String(api.vbios);
  const Text gsp = ask.GspFirmware();
  const Text inforom = ask.String(api.inforom_image);
  if (vbios.known()) blocks["vbios"] = vbios.value;
  if (gsp.known()) blocks["gsp"] = gsp.value;
  if (inforom.known()) blocks["inforom"] = inforom.value;
  using Firmware = std::map<std::string, std::string>;
  device.firmware = blocks.empty() ? SameGap<Firmware>(vbios) : Reading<Firmware>::Of(blocks);
}

void ReadNodes(const Number& minor, Device& device) {
  device.device_nodes = {"/dev/nvidia-uvm", "/dev/nvidiactl"};
  if (minor.known()) {
    device.device_nodes.insert(device.device_nodes.begin() + 1,
                               "/dev/nvidia" + std::to_string(minor.value));
    std::sort(device.device_nodes.begin(), device.device_nodes.end());
  }
}

// Pages of GPUs before Ampere, by both causes.
Number RetiredPages(NvmlAsker& ask) {
  if (ask.api().retired_pages == nullptr) return NvmlAsker::Missing<std::int64_t>();
  std::int64_t total = 0;
  for (const int cause : {0, 1}) {  // many single-bit errors, a double-bit error
    unsigned count = 0;
    const auto code = ask.api().retired_pages(ask.handle(), cause, &count, nullptr);
    if (code != nvml::kSuccess && code != nvml::kInsufficientSize) {
      return ask.Answer<std::int64_t>(code);
    }
    total += count;
  }
  return Number::Of(total);
}

Number RetiredPagesPending(NvmlAsker& ask) {
  int pending = 0;
  if (ask.api().retired_pages_pending == nullptr) return NvmlAsker::Missing<std::int64_t>();
  const auto code = ask.api().retired_pages_pending(ask.handle(), &pending);
  return code == nvml::kSuccess ? Number::Of(pending != 0 ? 1 : 0) : ask.Answer<std::int64_t>(code);
}

// Rows that were replaced (Ampere and later), else pages that were retired.
void ReadRows(NvmlAsker& ask, Device& device) {
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  Number gap = NvmlAsker::Missing<std::int64_t>();
  if (ask.api().remapped_rows != nullptr) {
    const auto code =
        ask.api().remapped_rows(ask.handle(), &corrected, &uncorrected, &pending, &failed);
    if (code == nvml::kSuccess) {
      device.retired_rows = Number::Of(std::int64_t{corrected} + uncorrected);
      device.rows_pending = Number::Of(pending != 0 ? 1 : 0);
      device.rows_failed = Number::Of(failed != 0 ? 1 : 0);
      return;
    }
    gap = ask.Answer<std::int64_t>(code);
  }
  device.retired_rows = device.rows_pending = device.rows_failed = gap;
  if (gap.state == Known::kError) return;
  device.retired_rows = RetiredPages(ask);
  device.rows_pending = RetiredPagesPending(ask);
  device.rows_failed = Number::Unknown("GPUs that retire pages do not tell");
}

// Every NVLink that the GPU has, up or down.
void ReadNvLinks(NvmlAsker& ask, NvmlGpu& gpu) {
  const nvml::Api& api = ask.api();
  using Links = std::vector<DeviceLink>;
  if (api.nvlink_state == nullptr) {
    gpu.device.links = NvmlAsker::Missing<Links>();
    return;
  }
  gpu.device.links = Reading<Links>::Of({});
  for (unsigned link = 0; link < nvml::kMaxNvLinks; ++link) {
    int active = 0;
    const auto code = api.nvlink_state(ask.handle(), link, &active);
    if (code == nvml::kInvalidArgument || code == nvml::kNotSupported) return;  // it has no more
    if (code != nvml::kSuccess) {
      gpu.device.links = ask.Answer<Links>(code);
      gpu.nvlinks.clear();
      return;
    }
    NvLinkEnd end;
    end.active = active != 0;
    nvml::PciInfo info{};
    if (end.active && api.nvlink_remote_pci != nullptr &&
        api.nvlink_remote_pci(ask.handle(), link, &info) == nvml::kSuccess) {
      end.remote_address =
          NormalPciAddress(std::string(info.bus_id, strnlen(info.bus_id, sizeof info.bus_id)));
    }
    gpu.nvlinks.push_back(std::move(end));
  }
}

// "NVIDIA H100 80GB HBM3 MIG 1g.10gb" is a model and a profile.
void SplitProfile(const Text& name, const Device& parent, Device& instance) {
  instance.model = parent.model;
  const auto at = name.known() ? name.value.rfind(" MIG ") : std::string::npos;
  instance.partition = at == std::string::npos
                           ? Text::Unknown("the library's name of the instance has no profile")
                           : Text::Of(name.value.substr(at + 5));
}

void ReadInstances(const nvml::Api& api, nvml::Handle handle, NvmlGpu& gpu) {
  unsigned most = 0;
  if (api.max_mig_devices == nullptr || api.mig_handle == nullptr ||
      api.max_mig_devices(handle, &most) != nvml::kSuccess) {
    return;
  }
  for (unsigned i = 0; i < most && i < 64; ++i) {
    nvml::Handle instance_handle = nullptr;
    if (api.mig_handle(handle, i, &instance_handle) != nvml::kSuccess) continue;
    nvml::Return worst = 0;
    NvmlAsker ask(api, instance_handle, worst);
    const Text uuid = ask.String(api.uuid);
    if (!uuid.known()) continue;
    Device instance = gpu.device;
    instance.id.value = uuid.value;
    SplitProfile(ask.String(api.name), gpu.device, instance);
    instance.parent = Text::Of(gpu.device.id.value);
    const auto memory = ask.MemoryInfo();
    instance.memory_bytes = memory.total;
    instance.links = Reading<std::vector<DeviceLink>>::Of({}, "an instance has none");
    nvml::Attributes attributes{};
    instance.compute_units = Number::Unknown("the library gives no attributes");
    if (api.attributes != nullptr &&
        api.attributes(instance_handle, &attributes) == nvml::kSuccess) {
      instance.compute_units = Number::Of(attributes.multiprocessors);
    }
    gpu.instance_telemetry.push_back(InstanceTelemetry(ask, gpu.telemetry, memory.used));
    gpu.instances.push_back(std::move(instance));
  }
}

}  // namespace

NvmlGpu ReadNvmlGpu(const nvml::Api& api, unsigned index) {
  NvmlGpu gpu;
  gpu.index = index;
  Device& device = gpu.device;
  device.vendor = Vendor::kNvidia;
  device.index = static_cast<int>(index);
  nvml::Handle handle = nullptr;
  if (const auto code = api.handle_by_index(index, &handle); code != nvml::kSuccess) {
    gpu.worst = code;
    gpu.why_no_handle = nvml::ReturnText(code);
    return gpu;
  }
  NvmlAsker ask(api, handle, gpu.worst);
  const Text uuid = ask.String(api.uuid);
  if (uuid.known()) device.id.value = uuid.value;
  device.model = ask.String(api.name);
  device.serial = ask.String(api.serial);
  const auto pci = ask.PciInfo();
  device.pci_address = pci.address;
  device.pci_id = pci.id;
  device.architecture = ask.Architecture();
  const auto memory = ask.MemoryInfo();
  device.memory_bytes = memory.total;
  device.compute_units = Multiprocessors(ask.Unsigned(api.cores), device.architecture);
  device.link_generation = ask.Unsigned(api.link_generation);
  device.link_generation_max = ask.Unsigned(api.max_link_generation);
  device.link_width = ask.Unsigned(api.link_width);
  device.link_width_max = ask.Unsigned(api.max_link_width);
  ReadFirmware(ask, api, device);
  const Number ecc = ask.Mode(api.ecc_mode);
  device.ecc = ecc.known() ? Text::Of(ecc.value != 0 ? "on" : "off") : SameGap<std::string>(ecc);
  device.uncorrected_errors = ask.EccErrors(1);
  ReadNodes(ask.Unsigned(api.minor), device);
  ReadRows(ask, device);
  ReadNvLinks(ask, gpu);
  gpu.telemetry = ReadNvmlTelemetry(ask, memory.used);
  const Number mig = ask.Mode(api.mig_mode);
  gpu.mig_on = mig.known() && mig.value == 1;
  // Not supported means that the GPU is always whole.
  device.partition =
      mig.known() || mig.state == Known::kUnknown ? Text::Of("off") : SameGap<std::string>(mig);
  if (gpu.mig_on) ReadInstances(api, handle, gpu);
  return gpu;
}

}  // namespace bimetal::agent
