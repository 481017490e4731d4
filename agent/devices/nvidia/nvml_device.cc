#include "agent/devices/nvidia/nvml_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "agent/devices/nvidia/proc.h"

namespace bimetal::agent {
namespace {

using Number = Reading<std::int64_t>;
using Text = Reading<std::string>;

// Asks one device; keeps the gravest answer.
class Asker {
 public:
  Asker(const nvml::Api& api, nvml::Handle handle, nvml::Return& worst)
      : api_(api), handle_(handle), worst_(worst) {}

  Text String(nvml::TextCall call) {
    std::array<char, 256> buffer{};
    if (call == nullptr) return Missing<std::string>();
    const auto code = call(handle_, buffer.data(), static_cast<unsigned>(buffer.size() - 1));
    if (code != nvml::kSuccess) return Answer<std::string>(code);
    return FromBuffer(buffer.data());
  }

  Text GspFirmware() {
    std::array<char, 256> buffer{};
    if (api_.gsp_firmware == nullptr) return Missing<std::string>();
    const auto code = api_.gsp_firmware(handle_, buffer.data());
    if (code != nvml::kSuccess) return Answer<std::string>(code);
    return FromBuffer(buffer.data());
  }

  Number Unsigned(nvml::NumberCall call) {
    unsigned value = 0;
    if (call == nullptr) return Missing<std::int64_t>();
    const auto code = call(handle_, &value);
    if (code != nvml::kSuccess) return Answer<std::int64_t>(code);
    if (value == std::numeric_limits<unsigned>::max()) return NotAvailable();
    return Number::Of(value);
  }

  // The first of the two numbers: the present mode.
  Number Mode(nvml::TwoNumbersCall call) {
    unsigned now = 0;
    unsigned pending = 0;
    if (call == nullptr) return Missing<std::int64_t>();
    const auto code = call(handle_, &now, &pending);
    return code == nvml::kSuccess ? Number::Of(now) : Answer<std::int64_t>(code);
  }

  Number Memory() {
    std::uint64_t total = 0;
    nvml::Return code = nvml::kFunctionNotFound;
    if (api_.memory_v2 != nullptr) {
      nvml::MemoryV2 memory{};
      memory.version = nvml::kMemoryV2Version;
      code = api_.memory_v2(handle_, &memory);
      total = memory.total;
    }
    if (code != nvml::kSuccess && api_.memory_v1 != nullptr) {
      nvml::MemoryV1 memory{};
      code = api_.memory_v1(handle_, &memory);
      total = memory.total;
    }
    if (code != nvml::kSuccess) return Answer<std::int64_t>(code);
    if (total == 0 || total > static_cast<std::uint64_t>(INT64_MAX)) return NotAvailable();
    return Number::Of(static_cast<std::int64_t>(total));
  }

  Text Architecture() {
    int major = 0;
    int minor = 0;
    if (api_.compute_capability == nullptr) return Missing<std::string>();
    const auto code = api_.compute_capability(handle_, &major, &minor);
    if (code != nvml::kSuccess) return Answer<std::string>(code);
    if (major < 1 || major > 99 || minor < 0 || minor > 9) {
      return Text::Failed("compute capability " + std::to_string(major) + "." +
                          std::to_string(minor) + " is not possible");
    }
    return Text::Of("sm_" + std::to_string(major) + std::to_string(minor));
  }

  Text PciAddress() {
    nvml::PciInfo info{};
    if (api_.pci_info == nullptr) return Missing<std::string>();
    const auto code = api_.pci_info(handle_, &info);
    if (code != nvml::kSuccess) return Answer<std::string>(code);
    const std::string text(info.bus_id, strnlen(info.bus_id, sizeof info.bus_id));
    if (text.empty()) return Text::Unknown("the library gives no bus id");
    return Text::Of(NormalPciAddress(text));
  }

  Number UncorrectedErrors() {
    std::uint64_t count = 0;
    constexpr int kUncorrected = 1;
    constexpr int kVolatile = 0;
    if (api_.total_ecc_errors == nullptr) return Missing<std::int64_t>();
    const auto code = api_.total_ecc_errors(handle_, kUncorrected, kVolatile, &count);
    if (code != nvml::kSuccess) return Answer<std::int64_t>(code);
    if (count > static_cast<std::uint64_t>(INT64_MAX)) return NotAvailable();
    return Number::Of(static_cast<std::int64_t>(count));
  }

 private:
  static Text FromBuffer(const char* buffer) {
    if (*buffer == '\0') return Text::Unknown("the library gives an empty text");
    return Text::Of(buffer);
  }

  template <class T>
  static Reading<T> Missing() {
    return Reading<T>::Unknown("the library does not have this query");
  }

  static Number NotAvailable() { return Number::Unknown("the library gives 'not available'"); }

  template <class T>
  Reading<T> Answer(nvml::Return code) {
    if (code == nvml::kGpuIsLost || code == nvml::kResetRequired) worst_ = code;
    if (code == nvml::kNotSupported || code == nvml::kFunctionNotFound) {
      return Reading<T>::Unknown(nvml::ReturnText(code));
    }
    return Reading<T>::Failed(nvml::ReturnText(code));
  }

  const nvml::Api& api_;
  nvml::Handle handle_;
  nvml::Return& worst_;
};

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

void ReadFirmware(Asker& ask, const nvml::Api& api, Device& device) {
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

void ReadRemapping(const nvml::Api& api, nvml::Handle handle, NvmlGpu& gpu) {
  if (api.remapped_rows == nullptr) return;
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (api.remapped_rows(handle, &corrected, &uncorrected, &pending, &failed) != nvml::kSuccess) {
    return;
  }
  gpu.remap_pending = pending != 0;
  gpu.remap_failed = failed != 0;
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
    Asker ask(api, instance_handle, worst);
    const Text uuid = ask.String(api.uuid);
    if (!uuid.known()) continue;
    Device instance = gpu.device;
    instance.id.value = uuid.value;
    SplitProfile(ask.String(api.name), gpu.device, instance);
    instance.parent = Text::Of(gpu.device.id.value);
    instance.memory_bytes = ask.Memory();
    nvml::Attributes attributes{};
    instance.compute_units = Number::Unknown("the library gives no attributes");
    if (api.attributes != nullptr &&
        api.attributes(instance_handle, &attributes) == nvml::kSuccess) {
      instance.compute_units = Number::Of(attributes.multiprocessors);
    }
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
  Asker ask(api, handle, gpu.worst);
  const Text uuid = ask.String(api.uuid);
  if (uuid.known()) device.id.value = uuid.value;
  device.model = ask.String(api.name);
  device.serial = ask.String(api.serial);
  device.pci_address = ask.PciAddress();
  device.architecture = ask.Architecture();
  device.memory_bytes = ask.Memory();
  device.compute_units = Multiprocessors(ask.Unsigned(api.cores), device.architecture);
  device.link_generation = ask.Unsigned(api.link_generation);
  device.link_generation_max = ask.Unsigned(api.max_link_generation);
  device.link_width = ask.Unsigned(api.link_width);
  device.link_width_max = ask.Unsigned(api.max_link_width);
  ReadFirmware(ask, api, device);
  const Number ecc = ask.Mode(api.ecc_mode);
  device.ecc = ecc.known() ? Text::Of(ecc.value != 0 ? "on" : "off") : SameGap<std::string>(ecc);
  device.uncorrected_errors = ask.UncorrectedErrors();
  ReadNodes(ask.Unsigned(api.minor), device);
  ReadRemapping(api, handle, gpu);
  const Number mig = ask.Mode(api.mig_mode);
  gpu.mig_on = mig.known() && mig.value == 1;
  // Not supported means that the GPU is always whole.
  device.partition =
      mig.known() || mig.state == Known::kUnknown ? Text::Of("off") : SameGap<std::string>(mig);
  if (gpu.mig_on) ReadInstances(api, handle, gpu);
  return gpu;
}

}  // namespace bimetal::agent
