#include "agent/devices/nvidia/nvidia_source.h"

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "agent/devices/nvidia/nvml_device.h"
#include "agent/devices/nvidia/proc.h"
#include "agent/devices/nvidia/toolkit.h"
#include "agent/devices/pci.h"
#include "agent/devices/probe.h"

namespace bimetal::agent {
namespace {

constexpr std::uint64_t kNvidiaVendor = 0x10de;
constexpr char kShutdownStep[] = "shutdown";

Reading<std::string> NvidiaPciId(std::uint64_t device) {
  std::array<char, 16> id;
  std::snprintf(id.data(), id.size(), "10de:%04x", static_cast<unsigned>(device & 0xffff));
  return Reading<std::string>::Of(id.data());
}

class NvidiaReader {
 public:
  NvidiaReader(const NvidiaSourceOptions& options, ReadProgress& progress)
      : options_(options), files_(options.root), progress_(progress) {}

  SourceReport Read() {
    // The module's and the kernel's own files can hang too, where the driver holds a lock.
    if (Take("proc")) proc_ = ReadProcNvidia(files_);
    if (Take("pci")) pci_ = ReadPciGpus(files_, kNvidiaVendor);
    report_.facts["driver"] = proc_.driver;
    report_.facts["flavor"] = proc_.flavor;
    report_.facts["toolkit"] =
        AnyGpu() ? ReadToolkitVersion(files_) : Reading<std::string>::Unknown("no NVIDIA GPU");
    report_.facts["runtime"] = Reading<std::string>::Unknown("the vendor's library was not asked");
    report_.facts["library"] = report_.facts["runtime"];
    ReadLibrary();
    AddProcDevices();
    AddLinks();
    CheckPci();
    CheckCounts();
    for (auto& [id, device] : devices_) {
      device.driver = report_.facts["driver"];
      report_.devices.push_back(std::move(device));
    }
    return std::move(report_);
  }

 private:
  bool Take(const std::string& step) {
    if (progress_.ShouldSkip(step)) return false;
    progress_.Begin(step);
    return true;
  }

  void Add(std::string code, Severity severity, std::string device, std::string evidence,
           std::string remedy) {
    report_.findings.push_back(
        {std::move(code), severity, std::move(device), std::move(evidence), std::move(remedy), ""});
  }

  bool AnyGpu() const { return !proc_.gpus.empty() || !pci_.gpus.empty(); }

  std::vector<std::string> Candidates() const {
    if (!options_.library.empty()) return {options_.library};
    // In a pod the container runtime puts the driver's library into our own tree, with the device
    // files that it opens. One of the node's /usr is for the node's libc, and finds none of them.
    if (options_.system_library && options_.root != "/") return {"libnvidia-ml.so.1"};
    const std::string root = options_.root == "/" ? "" : options_.root;
    std::vector<std::string> out = {root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                    root + "/usr/lib64/libnvidia-ml.so.1",
                                    root + "/usr/lib/libnvidia-ml.so.1"};
    if (options_.system_library) out.push_back("libnvidia-ml.so.1");
    return out;
  }

  void ReadLibrary() {
    if (progress_.ShouldSkip(kVendorStep)) {
      no_library_ = "the vendor's library hung or crashed before";
      library_broken_ = true;
      return;
    }
    progress_.Begin(kVendorStep);
    auto api = nvml::Open(Candidates());
    if (!api) {
      no_library_ = api.error().message;
      if (AnyGpu()) {
        Add("VendorLibraryMissing", Severity::kError, "", no_library_,
            "install the driver's user-space libraries, of the kernel module's version");
      }
      return;
    }
    report_.simulated = api->simulated;
    if (const auto code = api->init(); code != nvml::kSuccess) {
      ReportInitFailure(code, api->path);
      return;
    }
    ReadFacts(*api);
    ReadGpus(*api);
    if (api->shutdown != nullptr && !progress_.ShouldSkip(kShutdownStep)) {
      progress_.Begin(kShutdownStep);
      api->shutdown();
    }
  }

  void ReportInitFailure(nvml::Return code, const std::string& path) {
    no_library_ = "nvmlInit: " + nvml::ReturnText(code);
    if (code == nvml::kDriverNotLoaded && !AnyGpu()) return;  // a node without GPUs
    library_broken_ = true;
    const std::string evidence = path + ": " + no_library_;
    if (code == nvml::kLibRmVersionMismatch) {
      Add("DriverLibraryMismatch", Severity::kError, "",
          evidence +
              "; loaded module: " + (proc_.driver.known() ? proc_.driver.value : proc_.driver.why),
          "reboot, or unload and load the nvidia modules, so that both are of one version");
    } else if (code == nvml::kDriverNotLoaded) {
      Add("DriverNotLoaded", Severity::kError, "", evidence,
          "load the nvidia module; look in the kernel log for why it refused");
    } else {
      Add("VendorLibraryFailed", Severity::kError, "", evidence,
          "look for NVRM lines in the kernel log; reboot the node where it stays");
    }
  }

  void ReadFacts(const nvml::Api& api) {
    std::array<char, 256> text{};
    const auto size = static_cast<unsigned>(text.size() - 1);
    if (api.driver_version != nullptr && api.driver_version(text.data(), size) == 0 &&
        text[0] != '\0') {
      report_.facts["driver"] = Reading<std::string>::Of(text.data());
    }
    text.fill('\0');
    if (api.nvml_version != nullptr && api.nvml_version(text.data(), size) == 0 &&
        text[0] != '\0') {
      report_.facts["library"] = Reading<std::string>::Of(text.data());
    }
    int cuda = 0;
    if (api.cuda_version != nullptr && api.cuda_version(&cuda) == 0 && cuda > 0) {
      report_.facts["runtime"] = Reading<std::string>::Of("CUDA " + std::to_string(cuda / 1000) +
                                                          "." + std::to_string(cuda % 1000 / 10));
    }
  }

  void ReadGpus(const nvml::Api& api) {
    unsigned count = 0;
    if (const auto code = api.count(&count); code != nvml::kSuccess) {
      no_library_ = "nvmlDeviceGetCount: " + nvml::ReturnText(code);
      library_broken_ = true;
      Add("VendorLibraryFailed", Severity::kError, "", no_library_,
          "look for NVRM lines in the kernel log; reboot the node where it stays");
      return;
    }
    constexpr unsigned kMostGpus = 256;
    library_count_ = count;
    for (unsigned i = 0; i < count && i < kMostGpus; ++i) {
      const std::string step = "gpu " + std::to_string(i);
      if (progress_.ShouldSkip(step)) {
        failed_.push_back("index " + std::to_string(i) + ": it hung or crashed before");
        continue;
      }
      progress_.Begin(step);
      AddLibraryGpu(ReadNvmlGpu(api, i));
    }
  }

  const ProcGpu* ProcAt(const Reading<std::string>& address) const {
    for (const ProcGpu& gpu : proc_.gpus) {
      if (address.known() && gpu.address == address.value) return &gpu;
    }
    return nullptr;
  }

  void AddLibraryGpu(NvmlGpu gpu) {
    const ProcGpu* proc = ProcAt(gpu.device.pci_address);
    if (gpu.device.id.value.empty() && proc != nullptr) {
      gpu.device.id.value = proc->Get("GPU UUID").value;
    }
    if (gpu.device.id.value.empty()) {
      failed_.push_back("index " + std::to_string(gpu.index) + ": " +
                        (gpu.why_no_handle.empty() ? "no UUID" : gpu.why_no_handle));
      return;
    }
    ++answered_;
    if (proc != nullptr) seen_.insert(proc->address);
    FillFromPci(gpu.device);
    SetHealth(gpu);
    if (gpu.device.pci_address.known()) {
      whole_at_[gpu.device.pci_address.value] = gpu.device.id.value;
    }
    if (!gpu.mig_on) {
      if (gpu.device.links.known()) nvlinks_[gpu.device.id.value] = std::move(gpu.nvlinks);
      report_.telemetry[gpu.device.id.value] = std::move(gpu.telemetry);
      Insert(std::move(gpu.device));
      return;
    }
    if (gpu.instances.empty()) {
      Add("MigWithoutInstances", Severity::kWarning, gpu.device.id.value,
          "MIG is on and the GPU has no instance", "create instances, or switch MIG off");
    }
    for (std::size_t i = 0; i < gpu.instances.size(); ++i) {
      Device& instance = gpu.instances[i];
      FillFromPci(instance);
      instance.healthy = gpu.device.healthy;
      report_.telemetry[instance.id.value] = std::move(gpu.instance_telemetry[i]);
      Insert(std::move(instance));
    }
  }

  void SetHealth(NvmlGpu& gpu) {
    Device& device = gpu.device;
    device.healthy = Reading<bool>::Of(true);
    const auto fail = [&](const std::string& why) {
      device.healthy = Reading<bool>::Of(false, why);
    };
    if (device.rows_pending.known() && device.rows_pending.value > 0) {
      Add("RowRemapPending", Severity::kWarning, device.id.value,
          "a memory row waits to be replaced", "reset the GPU when it is idle");
    }
    if (device.uncorrected_errors.known() && device.uncorrected_errors.value > 0) {
      fail(std::to_string(device.uncorrected_errors.value) + " uncorrectable memory errors");
    }
    if (device.rows_failed.known() && device.rows_failed.value > 0) {
      fail("a memory row could not be replaced");
      Add("RowRemapFailed", Severity::kError, device.id.value, "row remapping failed",
          "replace the GPU");
    }
    if (gpu.worst == nvml::kGpuIsLost) {
      fail("the GPU is lost");
      AddLost(device.id.value, "index " + std::to_string(gpu.index));
    } else if (gpu.worst == nvml::kResetRequired) {
      fail("the GPU needs a reset");
      Add("DeviceNeedsReset", Severity::kError, device.id.value, nvml::ReturnText(gpu.worst),
          "reset the GPU");
    }
  }

  void AddLost(const std::string& id, const std::string& where) {
    Add("DeviceLost", Severity::kError, id, where + ": " + nvml::ReturnText(nvml::kGpuIsLost),
        "reboot the node; check seating and power where it comes again");
  }

  void FillFromPci(Device& device) const {
    device.numa_node = Reading<std::int64_t>::Unknown("sysfs does not list the GPU");
    device.cpus = Reading<std::string>::Unknown("sysfs does not list the GPU");
    for (const PciGpu& gpu : pci_.gpus) {
      if (!device.pci_address.known() || gpu.address != device.pci_address.value) continue;
      if (!device.pci_id.known() && gpu.device) device.pci_id = NvidiaPciId(*gpu.device);
      device.cpus = files_.Text(gpu.folder + "/local_cpulist");
      device.numa_node = files_.Number(gpu.folder + "/numa_node");
      if (device.numa_node.known() && device.numa_node.value < 0) {
        device.numa_node = Reading<std::int64_t>::Unknown("the firmware names no NUMA node");
      }
    }
  }

  // GPUs that the kernel module lists and the library did not tell of.
  void AddProcDevices() {
    for (const ProcGpu& gpu : proc_.gpus) {
      if (seen_.contains(gpu.address) || gpu.Excluded()) continue;
      Device device;
      device.vendor = Vendor::kNvidia;
      const auto uuid = gpu.Get("GPU UUID");
      device.id.value = uuid.known() ? uuid.value : "PCI-" + gpu.address;
      device.model = gpu.Get("Model");
      device.pci_address = Reading<std::string>::Of(gpu.address);
      const auto vbios = gpu.Get("Video BIOS");
      using Firmware = std::map<std::string, std::string>;
      device.firmware = SameGap<Firmware>(vbios);
      if (vbios.known()) device.firmware = Reading<Firmware>::Of({{"vbios", vbios.value}});
      FillFromPci(device);
      if (library_count_) {
        device.healthy = Reading<bool>::Of(false, "the vendor's library does not answer for it");
        AddUnanswered(device.id.value);
      } else if (library_broken_) {
        device.healthy = Reading<bool>::Of(false, no_library_);
      } else {
        device.healthy = Reading<bool>::Unknown(no_library_);
      }
      Insert(std::move(device));
    }
  }

  // Bundles each GPU's NVLinks by what is at their other ends: a GPU of this node, else a switch.
  void AddLinks() {
    for (const auto& [id, ends] : nvlinks_) {
      std::map<std::string, DeviceLink> bundles;
      for (const NvLinkEnd& end : ends) {
        const auto peer = whole_at_.find(end.remote_address);
        const std::string name = peer == whole_at_.end() ? std::string() : peer->second;
        DeviceLink& bundle = bundles[name];
        bundle.kind = "nvlink";
        bundle.peer = name;
        ++bundle.count;
        bundle.active += end.active ? 1 : 0;
      }
      std::vector<DeviceLink> links;
      for (auto& [name, bundle] : bundles) links.push_back(std::move(bundle));
      const auto device = devices_.find(id);
      if (device != devices_.end()) {
        device->second.links = Reading<std::vector<DeviceLink>>::Of(std::move(links));
      }
    }
  }

  void AddUnanswered(const std::string& id) {
    std::string evidence = "the kernel module lists it, the library does not";
    for (const std::string& failure : failed_) evidence += "; " + failure;
    Add("DeviceLost", Severity::kError, id, evidence,
        "look for Xid and NVRM lines in the kernel log; reset the GPU or reboot the node");
  }

  void Insert(Device device) {
    const std::string id = device.id.value;
    if (!devices_.emplace(id, std::move(device)).second) {
      Add("DuplicateDevice", Severity::kError, id, "two GPUs have one UUID",
          "report it with the driver version; the device is counted once");
    }
  }

  void CheckPci() {
    for (const PciGpu& gpu : pci_.gpus) {
      if (!gpu.driver.known() || gpu.driver.value == "nvidia") {
        ++pci_bound_;
      } else if (gpu.driver.value.empty()) {
        Add("DriverNotBound", Severity::kError, gpu.address, "no driver is bound to it",
            "load the nvidia module; look in the kernel log for why it refused the device");
      } else {
        Add("DriverConflict", Severity::kWarning, gpu.address,
            "it is bound to the driver " + gpu.driver.value,
            gpu.driver.value == "nouveau" ? "blacklist nouveau and reboot"
                                          : "bind it to nvidia, or leave it on purpose");
      }
    }
  }

  // The kernel module, the PCI bus and the library must agree on the number of GPUs.
  void CheckCounts() {
    std::map<std::string, std::size_t> counts;
    std::size_t listed = 0;
    for (const ProcGpu& gpu : proc_.gpus) listed += gpu.Excluded() ? 0 : 1;
    const std::size_t excluded = proc_.gpus.size() - listed;
    if (proc_.present) counts["/proc/driver/nvidia"] = listed;
    if (pci_.present && pci_bound_ >= excluded) counts["the PCI bus"] = pci_bound_ - excluded;
    if (library_count_) {
      counts["the library"] = *library_count_;
      if (!failed_.empty()) counts["the library with answers"] = answered_;
    }
    std::set<std::size_t> values;
    std::string evidence;
    for (const auto& [source, count] : counts) {
      values.insert(count);
      evidence += (evidence.empty() ? "" : ", ") + source + " has " + std::to_string(count);
    }
    for (const std::string& failure : failed_) evidence += "; " + failure;
    if (values.size() < 2) return;
    Add("InventoryInconsistent", Severity::kError, "", evidence,
        "look for NVRM lines in the kernel log: a GPU was refused or lost");
  }

  NvidiaSourceOptions options_;
  RootFiles files_;
  ReadProgress& progress_;
  SourceReport report_;
  ProcNvidia proc_;
  PciGpus pci_;
  std::map<std::string, Device> devices_;
  std::set<std::string> seen_;                   // addresses of /proc that the library told of
  std::map<std::string, std::string> whole_at_;  // PCI address -> id of the GPU there
  std::map<std::string, std::vector<NvLinkEnd>> nvlinks_;  // by id of the GPU
  std::vector<std::string> failed_;                        // indices without identity
  std::optional<std::size_t> library_count_;
  std::size_t answered_ = 0;
  std::size_t pci_bound_ = 0;
  std::string no_library_;       // why the library was not asked
  bool library_broken_ = false;  // it is there and does not work
};

class NvidiaSource final : public DeviceSource {
 public:
  explicit NvidiaSource(NvidiaSourceOptions options) : options_(std::move(options)) {}
  SourceReport Read(ReadProgress& progress) override {
    return NvidiaReader(options_, progress).Read();
  }

 private:
  NvidiaSourceOptions options_;
};

}  // namespace

std::unique_ptr<DeviceSource> MakeNvidiaSource(NvidiaSourceOptions options) {
  return std::make_unique<NvidiaSource>(std::move(options));
}

}  // namespace bimetal::agent
