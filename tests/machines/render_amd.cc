#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

#include "tests/machines/render.h"

namespace bimetal::machines {
namespace {

constexpr char kTopology[] = "sys/class/kfd/kfd/topology/";
constexpr int kFirstRender = 128;

std::string Hex(std::int64_t value, const char* format) {
  std::array<char, 32> text;
  const int n = std::snprintf(text.data(), text.size(), format, static_cast<unsigned>(value));
  return std::string(text.data(), static_cast<std::size_t>(n));
}

std::uint64_t FromHex(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// gfx942 as 90402, gfx90a as 90010, gfx1100 as 110000: the last two digits are hexadecimal.
std::int64_t TargetVersion(const std::string& arch) {
  const std::string digits = arch.substr(3);
  if (digits.size() < 3) return 0;
  const std::size_t split = digits.size() - 2;
  return std::stoll(digits.substr(0, split)) * 10'000 +
         static_cast<std::int64_t>(FromHex(digits.substr(split, 1)) * 100 +
                                   FromHex(digits.substr(split + 1)));
}

std::string LinkSpeed(std::int64_t generation) {
  constexpr std::array<const char*, 6> kSpeeds = {"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
  return std::string(kSpeeds[static_cast<std::size_t>(generation - 1)]) + " GT/s PCIe";
}

struct Place {
  std::uint64_t domain = 0;
  std::uint64_t location = 0;  // bus and device, function 0
};

Place PlaceOf(const std::string& pci) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  std::sscanf(pci.c_str(), "%x:%x:%x", &domain, &bus, &device);
  return {domain, (static_cast<std::uint64_t>(bus) << 8) | (device << 3)};
}

class AmdRenderer {
 public:
  AmdRenderer(const Description& description, const State& state, const std::vector<Gpu>& gpus,
              Tree& tree)
      : description_(description), state_(state), tree_(tree) {
    for (const Gpu& gpu : gpus) {
      // A GPU that has vanished is in no tree: the node has one device less.
      if (!gpu.Has(Fault::Kind::kVanish)) gpus_.push_back(gpu);
    }
  }

  void Render() {
    RenderNode();
    for (int cpu = 0; cpu < description_.numa_nodes; ++cpu) RenderCpu(cpu);
    int node = description_.numa_nodes;
    for (const Gpu& gpu : gpus_) {
      RenderCard(gpu);
      for (int part = 0; part < gpu.group->partitions; ++part) {
        if (part > 0) RenderPartitionEntry(gpu, part);
        RenderKfdNode(gpu, part, node++);
      }
    }
  }

 private:
  void Text(const std::string& path, const std::string& value) {
    tree_[path] = {File::Kind::kText, value + "\n"};
  }

  static int Card(const Gpu& gpu) { return 1 + gpu.number * 8; }
  static int Render(const Gpu& gpu, int part) { return kFirstRender + gpu.number * 8 + part; }

  void RenderNode() {
    const GpuGroup& group = *gpus_.at(0).group;
    // The kernel's own module has no version file, only a hash of its source.
    if (group.flavor == "in-tree") {
      Text("sys/module/amdgpu/srcversion", group.driver);
    } else {
      Text("sys/module/amdgpu/version", group.driver);
    }
    Text("sys/module/amdgpu/initstate", "live");
    if (!group.runtime.empty()) Text("opt/rocm/.info/version", group.runtime);
    const std::string shape = std::to_string(gpus_.size()) + "|" + std::to_string(state_.boots);
    Text(std::string(kTopology) + "generation_id",
         std::to_string(FromHex(Digits("generation|" + shape, 6))));
    Text(std::string(kTopology) + "system_properties",
         "platform_oem 0\nplatform_id 0\nplatform_rev 0");
  }

  void RenderCpu(int cpu) {
    const std::string folder = std::string(kTopology) + "nodes/" + std::to_string(cpu) + "/";
    Text(folder + "gpu_id", "0");
    Text(folder + "name", "");
    Text(folder + "properties",
         "cpu_cores_count " + std::to_string(kCpusOfNode) +
             "\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 0\n"
             "gfx_target_version 0\nvendor_id 0\ndevice_id 0\nlocation_id 0\ndomain 0\n"
             "drm_render_minor 0\nhive_id 0\nmax_engine_clk_ccompute 3700");
    Text(folder + "mem_banks/0/properties",
         "heap_type 0\nsize_in_bytes 811748818944\nflags 0\nwidth 72\nmem_clk_max 4800");
  }

  void RenderCard(const Gpu& gpu) {
    const GpuGroup& group = *gpu.group;
    const std::string folder = "sys/bus/pci/devices/" + gpu.pci + "/";
    const std::string card = std::to_string(Card(gpu));
    const std::string render = std::to_string(Render(gpu, 0));
    const std::string id = Hex(group.pci_device, "%04X");
    Text(folder + "vendor", "0x1002");
    Text(folder + "device", Hex(group.pci_device, "0x%04x"));
    Text(folder + "class", "0x120000");
    Text(folder + "uevent", "DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:" + id +
                                "\nPCI_SUBSYS_ID=1002:" + id + "\nPCI_SLOT_NAME=" + gpu.pci);
    tree_[folder + "driver"] = {File::Kind::kLink, "../../drivers/amdgpu"};
    Text(folder + "numa_node", std::to_string(gpu.numa));
    Text(folder + "local_cpulist", CpuList(gpu.numa));
    Text(folder + "product_name", group.model);
    Text(folder + "serial_number", gpu.serial);
    Text(folder + "unique_id", gpu.unique);
    Text(folder + "mem_info_vram_total", std::to_string(group.memory_bytes));
    Text(folder + "mem_info_vram_used", "0");
    Text(folder + "gpu_busy_percent", "0");
    for (const char* which : {"current", "max"}) {
      Text(folder + which + "_link_speed", LinkSpeed(group.link_generation));
      Text(folder + which + "_link_width", std::to_string(group.link_width));
    }
    Text(folder + "current_compute_partition", group.compute_partition);
    Text(folder + "available_compute_partition", "SPX, DPX, QPX, CPX");
    Text(folder + "current_memory_partition", group.memory_partition);
    RenderFirmware(group, folder);
    RenderTelemetry(folder);
    const Fault* ecc = gpu.Find(Fault::Kind::kEcc);
    Text(folder + "ras/features", "feature mask: 0x3fff");
    Text(folder + "ras/umc_err_count",
         "ue: " + std::to_string(ecc == nullptr ? 0 : ecc->count) + "\nce: 0");
    tree_[folder + "ras/gpu_vram_bad_pages"] = {File::Kind::kText, ""};
    Text(folder + "drm/card" + card + "/dev", "226:" + card);
    Text(folder + "drm/renderD" + render + "/dev", "226:" + render);
    tree_["sys/class/drm/card" + card + "/device"] = {File::Kind::kLink,
                                                      "../../../bus/pci/devices/" + gpu.pci};
    Text("sys/class/drm/card" + card + "/dev", "226:" + card);
  }

  // An idle GPU. gpu_metrics has version 1.7, of which no recording is public: laid out after the
  // kernel's structure, everything that is not set "not supported".
  void RenderTelemetry(const std::string& folder) {
    Text(folder + "pcie_replay_count", "0");
    Text(folder + "power/runtime_status", "active");
    const std::string hwmon = folder + "hwmon/hwmon3/";
    Text(hwmon + "name", "amdgpu");
    Text(hwmon + "temp2_label", "junction");
    Text(hwmon + "temp2_input", "38000");
    Text(hwmon + "temp3_label", "mem");
    Text(hwmon + "temp3_input", "31000");
    Text(hwmon + "power1_label", "PPT");
    Text(hwmon + "power1_input", "131000000");
    Text(hwmon + "power1_cap", "750000000");
    Text(hwmon + "freq1_label", "sclk");
    Text(hwmon + "freq1_input", "132000000");
    Text(hwmon + "freq2_label", "mclk");
    Text(hwmon + "freq2_input", "900000000");
    std::string metrics(2208, '\xff');
    const auto put = [&](std::size_t at, std::size_t width, std::uint64_t value) {
      for (std::size_t i = 0; i < width; ++i) metrics[at + i] = static_cast<char>(value >> (8 * i));
    };
    put(0, 2, metrics.size());
    put(2, 1, 1);
    put(3, 1, 7);
    put(4, 2, 38);
    put(10, 2, 131);
    put(24, 8, std::uint64_t{5000} << 16);  // energy, 2^-16 J
    for (std::size_t i = 0; i < 5; ++i) put(44 + 4 * i, 4, 0);
    for (std::size_t i = 0; i + 1 < gpus_.size() && i < 8; ++i) put(264 + 2 * i, 2, 1);
    put(296, 2, 132);
    put(336, 2, 900);
    tree_[folder + "gpu_metrics"] = {File::Kind::kText, metrics};
  }

  void RenderFirmware(const GpuGroup& group, const std::string& folder) {
    for (const auto& [name, version] : group.firmware) {
      Text(folder + (name == "vbios" ? "vbios_version" : "fw_version/" + name + "_fw_version"),
           version);
    }
  }

  void RenderPartitionEntry(const Gpu& gpu, int part) {
    const std::string number = std::to_string(gpu.number * (gpu.group->partitions - 1) + part - 1);
    const std::string folder =
        "sys/devices/platform/" + gpu.group->partition_entry + number + "/drm/";
    const std::string card = std::to_string(Card(gpu) + part);
    const std::string render = std::to_string(Render(gpu, part));
    Text(folder + "card" + card + "/dev", "226:" + card);
    Text(folder + "renderD" + render + "/dev", "226:" + render);
  }

  void RenderKfdNode(const Gpu& gpu, int part, int node) {
    const GpuGroup& group = *gpu.group;
    const std::string folder = std::string(kTopology) + "nodes/" + std::to_string(node) + "/";
    const Place place = PlaceOf(gpu.pci);
    const bool cdna = group.arch.size() == 6;  // gfx9xx; gfx10 and later have waves of 32
    const std::int64_t simd_per_cu = cdna ? 4 : 2;
    const std::int64_t units = group.compute_units / group.partitions;
    Text(folder + "gpu_id",
         std::to_string(1 + FromHex(Digits("kfd|" + gpu.unique + std::to_string(part), 4))));
    Text(folder + "name", "ip discovery");
    Text(folder + "properties",
         Properties({{"cpu_cores_count", 0},
                     {"simd_count", static_cast<std::uint64_t>(units * simd_per_cu)},
                     {"mem_banks_count", 1},
                     {"io_links_count", gpus_.size()},
                     {"wave_front_size", cdna ? 64 : 32},
                     {"simd_per_cu", static_cast<std::uint64_t>(simd_per_cu)},
                     {"gfx_target_version", static_cast<std::uint64_t>(TargetVersion(group.arch))},
                     {"vendor_id", 4098},
                     {"device_id", static_cast<std::uint64_t>(group.pci_device)},
                     {"location_id", place.location + static_cast<std::uint64_t>(part)},
                     {"domain", place.domain},
                     {"drm_render_minor", static_cast<std::uint64_t>(Render(gpu, part))},
                     {"hive_id", FromHex("5" + Digits("hive|" + state_.node, 15))},
                     {"num_sdma_engines", 2},
                     {"max_engine_clk_fcompute", 2100},
                     {"local_mem_size", 0},
                     {"unique_id", FromHex(gpu.unique)},
                     {"num_xcc", static_cast<std::uint64_t>(8 / group.partitions)}}));
    Text(folder + "mem_banks/0/properties",
         "heap_type 1\nsize_in_bytes " + std::to_string(group.memory_bytes / group.partitions) +
             "\nflags 0\nwidth 8192\nmem_clk_max 1300");
    RenderLinks(gpu, folder, node);
  }

  static std::string Properties(
      const std::vector<std::pair<std::string, std::uint64_t>>& properties) {
    std::string out;
    for (const auto& [key, value] : properties) {
      out += (out.empty() ? "" : "\n") + key + " " + std::to_string(value);
    }
    return out;
  }

  // PCIe to the GPU's own CPU node, XGMI to the first partition of every other GPU.
  void RenderLinks(const Gpu& gpu, const std::string& folder, int node) {
    int link = 0;
    const auto add = [&](std::uint64_t type, int to, std::uint64_t weight, std::uint64_t rate) {
      Text(folder + "io_links/" + std::to_string(link++) + "/properties",
           Properties({{"type", type},
                       {"node_from", static_cast<std::uint64_t>(node)},
                       {"node_to", static_cast<std::uint64_t>(to)},
                       {"weight", weight},
                       {"min_bandwidth", rate},
                       {"max_bandwidth", rate},
                       {"flags", 1}}));
    };
    add(2, gpu.numa, 20, 0);
    int to = description_.numa_nodes;
    for (const Gpu& other : gpus_) {
      if (other.number != gpu.number) add(11, to, 15, 50'000);
      to += other.group->partitions;
    }
  }

  const Description& description_;
  const State& state_;
  std::vector<Gpu> gpus_;
  Tree& tree_;
};

}  // namespace

void RenderAmd(const Description& description, const State& state, const std::vector<Gpu>& gpus,
               Tree& tree) {
  const bool any = std::any_of(gpus.begin(), gpus.end(),
                               [](const Gpu& gpu) { return !gpu.Has(Fault::Kind::kVanish); });
  if (any) AmdRenderer(description, state, gpus, tree).Render();
}

}  // namespace bimetal::machines
