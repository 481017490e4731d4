#include "agent/devices/amd/amd_source.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "agent/devices/amd/card.h"
#include "agent/devices/amd/card_telemetry.h"
#include "agent/devices/amd/kfd.h"
#include "agent/devices/data_tables.h"
#include "agent/devices/pci.h"
#include "agent/devices/probe.h"

namespace bimetal::agent {
namespace {

constexpr std::uint64_t kAmdVendor = 0x1002;

// A second or later partition of a GPU in the device tree: /sys/devices/platform/amdgpu_xcp.N, with
// an underscore for the dot in older drivers.
struct PartitionEntry {
  int number = 0;
  std::optional<int> render;
};

std::map<int, PartitionEntry> ReadPartitionEntries(const RootFiles& files) {
  std::map<int, PartitionEntry> entries;
  for (const std::string folder : {"sys/devices/platform", "sys/bus/platform/devices"}) {
    for (const std::string& name : files.List(folder).value) {
      auto number = NumberAfter(name, "amdgpu_xcp.");
      if (!number) number = NumberAfter(name, "amdgpu_xcp_");
      if (!number) continue;
      PartitionEntry& entry = entries[*number];
      entry.number = *number;
      for (const std::string& node : files.List(folder + "/" + name + "/drm").value) {
        if (const auto n = NumberAfter(node, "renderD")) entry.render = n;
      }
    }
  }
  return entries;
}

class AmdReader {
 public:
  AmdReader(const std::string& root, ReadProgress& progress) : files_(root), progress_(progress) {}

  SourceReport Read() {
    ReadTrees();
    ReadFacts();
    for (const KfdGpu& gpu : kfd_.gpus) AddKfdDevice(gpu);
    for (const AmdCard& card : cards_) {
      if (!seen_cards_.contains(card.pci.address)) AddCardDevice(card);
    }
    AddPartitionEntries();
    CheckTopology();
    CheckCounts();
    CheckPartitionCounts();
    AddLinks();
    for (auto& [id, device] : devices_) report_.devices.push_back(std::move(device));
    return std::move(report_);
  }

 private:
  // The kernel's own files can hang too, where a driver holds a lock that they need.
  bool Take(const std::string& step) {
    if (progress_.ShouldSkip(step)) return false;
    progress_.Begin(step);
    return true;
  }

  void ReadTrees() {
    if (Take("kfd")) {
      kfd_ = ReadKfd(files_);
    } else {
      kfd_.why = "left out: reading it hung or crashed before";
    }
    PciGpus pci;
    if (Take("pci")) pci = ReadPciGpus(files_, kAmdVendor);
    tree_present_ = pci.present;
    for (PciGpu& gpu : pci.gpus) cards_.push_back(ReadCard(files_, std::move(gpu), progress_));
    entries_ = ReadPartitionEntries(files_);
    for (const KfdGpu& gpu : kfd_.gpus) {
      if (const auto where = gpu.Where()) functions_[Silicon(*where)].insert(where->function);
    }
  }

  void ReadFacts() {
    auto& driver = report_.facts["driver"];
    driver = files_.Text("sys/module/amdgpu/version");
    if (!driver.known()) {
      const auto source = files_.Text("sys/module/amdgpu/srcversion");
      if (source.known()) driver = Reading<std::string>::Of("srcversion:" + source.value);
    }
    auto& flavor = report_.facts["flavor"];
    flavor = Reading<std::string>::Unknown("no module amdgpu");
    if (files_.Exists("sys/module/amdgpu/version")) {
      flavor = Reading<std::string>::Of("dkms");  // the kernel's own has no version file
    } else if (files_.Exists("sys/module/amdgpu")) {
      flavor = Reading<std::string>::Of("in-tree");
    }
    auto& runtime = report_.facts["runtime"];
    runtime = files_.Text("opt/rocm/.info/version");
    if (runtime.known()) runtime.value = std::string(Trim(Lines(runtime.value)[0]));
    const auto state = files_.Text("sys/module/amdgpu/initstate");
    if (state.known() && state.value != "live") {
      Add("DriverNotLive", Severity::kError, "", "module amdgpu is '" + state.value + "'",
          "look for amdgpu errors in the kernel log and reload the module");
    }
  }

  void Add(std::string code, Severity severity, std::string device, std::string evidence,
           std::string remedy) {
    report_.findings.push_back(
        {std::move(code), severity, std::move(device), std::move(evidence), std::move(remedy), ""});
  }

  // The PCI slot without its function: the physical GPU.
  static KfdGpu::Location Silicon(KfdGpu::Location where) {
    where.function = 0;
    return where;
  }

  const AmdCard* CardAt(const std::string& address) const {
    for (const AmdCard& card : cards_) {
      if (card.pci.address == address) return &card;
    }
    return nullptr;
  }

  // The card of a KFD node: at its address, or at the address of its silicon, or of its render
  // node.
  const AmdCard* CardOf(const KfdGpu& gpu) const {
    if (const auto where = gpu.Where()) {
      if (const AmdCard* card = CardAt(where->Address())) return card;
      if (const AmdCard* card = CardAt(Silicon(*where).Address())) return card;
      return nullptr;
    }
    const auto minor = gpu.Get("drm_render_minor");
    for (const AmdCard& card : cards_) {
      if (minor && card.pci.render && static_cast<std::uint64_t>(*card.pci.render) == *minor) {
        return &card;
      }
    }
    return nullptr;
  }

  // The number of the partition that `gpu` is; nothing where it is a whole GPU.
  std::optional<std::uint64_t> PartitionOf(const KfdGpu& gpu, const AmdCard* card) const {
    const auto where = gpu.Where();
    if (!where) return std::nullopt;
    const auto siblings = functions_.find(Silicon(*where));
    if (siblings != functions_.end() && siblings->second.size() > 1) return where->function;
    if (card != nullptr && card->compute_mode.known()) {
      if (card->compute_mode.value == "SPX") return std::nullopt;
      return where->function;
    }
    if (where->function != 0 && CardAt(where->Address()) == nullptr) return where->function;
    return std::nullopt;
  }

  void AddKfdDevice(const KfdGpu& gpu) {
    const AmdCard* card = CardOf(gpu);
    const auto partition = PartitionOf(gpu, card);
    const auto where = gpu.Where();
    Device device = BlankDevice(card);
    device.index = static_cast<int>(devices_.size());
    if (where) {
      device.pci_address =
          Reading<std::string>::Of((partition ? Silicon(*where) : *where).Address());
    }
    FillFromKfd(gpu, partition.has_value(), device);
    // A partition's own card number is not the whole GPU's.
    if (card != nullptr && !partition) SetNodes(device, card->pci.card, std::nullopt);
    std::string whole = WholeId(gpu.Get("unique_id").value_or(0), device);
    if (whole.empty()) {
      whole = "UNIDENTIFIED-amd-" + std::to_string(gpu.node);
      Add("DeviceWithoutIdentity", Severity::kError, whole,
          "kfd node " + std::to_string(gpu.node) + " has neither unique_id nor location_id",
          "update the kernel driver; the device cannot be offered without a stable id");
      device.healthy = Reading<bool>::Of(false, "the device has no stable identity");
    }
    device.id.value = whole;
    node_gpu_[gpu.node] = whole;
    if (partition) {
      device.id.value += "-p" + std::to_string(*partition);
      device.parent = Reading<std::string>::Of(whole);
      ++partitions_of_[whole];
    }
    if (card != nullptr) seen_cards_.insert(card->pci.address);
    node_device_[gpu.node] = device.id.value;
    AddTelemetry(gpu, card, partition.has_value(), device.id.value);
    // One render node is one device, whatever else says that there are two.
    const std::string origin = "kfd node " + std::to_string(gpu.node);
    const auto minor = gpu.Get("drm_render_minor").value_or(0);
    if (minor != 0 && !seen_renders_.insert(minor).second) {
      Add("DuplicateDevice", Severity::kError, device.id.value,
          origin + " has the render node of another one, renderD" + std::to_string(minor),
          "report it with the kernel version; the device is counted once");
      return;
    }
    Insert(std::move(device), origin);
  }

  void AddTelemetry(const KfdGpu& gpu, const AmdCard* card, bool is_partition,
                    const std::string& id) {
    Telemetry telemetry;
    if (card != nullptr) telemetry = card->telemetry;
    if (is_partition) {
      VisitTelemetry(
          [](std::string_view, auto& reading) {
            if (reading.known()) reading.why = "of the whole GPU";
          },
          telemetry);
      telemetry.memory_used_bytes =
          Reading<std::int64_t>::Unknown("the driver tells it of the whole GPU alone");
    }
    telemetry.processes = gpu.gpu_id == 0
                              ? Reading<std::vector<GpuProcess>>::Unknown("kfd tells no gpu_id")
                              : ReadKfdProcesses(files_, gpu.gpu_id);
    report_.telemetry[id] = std::move(telemetry);
  }

  Device BlankDevice(const AmdCard* card) const {
    Device device;
    device.vendor = Vendor::kAmd;
    device.partition = Reading<std::string>::Unknown("the device tree does not tell the mode");
    if (card != nullptr) FillFromCard(*card, device);
    device.driver = report_.facts.at("driver");
    return device;
  }

  // Fields that only KFD knows, and those where KFD knows better than the card's own files.
  void FillFromKfd(const KfdGpu& gpu, bool is_partition, Device& device) const {
    const auto pci_device = gpu.Get("device_id");
    if (!device.pci_id.known() && pci_device && *pci_device <= 0xffff) {
      device.pci_id = Reading<std::string>::Of(AmdPciId(*pci_device));
    }
    if (!device.model.known() && pci_device) device.model = ModelByPciId(*pci_device);
    const std::string gfx = GfxTarget(gpu.Get("gfx_target_version").value_or(0));
    if (!gfx.empty()) {
      device.architecture = Reading<std::string>::Of(gfx);
    } else if (!device.architecture.known() && pci_device) {
      device.architecture = ArchitectureByPciId(*pci_device);
    }
    const auto simds = gpu.Get("simd_count");
    const auto per_unit = gpu.Get("simd_per_cu");
    if (simds && per_unit && *per_unit != 0) {
      device.compute_units = Reading<std::int64_t>::Of(
          static_cast<std::int64_t>(std::min<std::uint64_t>(*simds / *per_unit, 1'000'000)));
    } else {
      device.compute_units = Reading<std::int64_t>::Unknown("kfd tells no simd_count");
    }
    // The card's own total counts all partitions.
    if (gpu.memory_bytes.known() || is_partition || !device.memory_bytes.known()) {
      device.memory_bytes = gpu.memory_bytes;
    }
    FillFirmwareFromKfd(gpu, device);
    if (const auto minor = gpu.Get("drm_render_minor"); minor && *minor != 0) {
      SetNodes(device, std::nullopt, static_cast<int>(std::min<std::uint64_t>(*minor, 1 << 20)));
    }
    if (device.healthy.state == Known::kUnknown) device.healthy = Reading<bool>::Of(true);
  }

  static void FillFirmwareFromKfd(const KfdGpu& gpu, Device& device) {
    auto& blocks = device.firmware.value;
    for (const auto& [key, name] : std::map<std::string, std::string>{
             {"fw_version", "kfd_mec"}, {"sdma_fw_version", "kfd_sdma"}}) {
      if (const auto version = gpu.Get(key)) blocks[name] = std::to_string(*version);
    }
    if (!blocks.empty()) device.firmware = Reading<std::map<std::string, std::string>>::Of(blocks);
  }

  static void SetNodes(Device& device, std::optional<int> card, std::optional<int> render) {
    std::set<std::string> nodes(device.device_nodes.begin(), device.device_nodes.end());
    nodes.insert("/dev/kfd");
    if (card) nodes.insert("/dev/dri/card" + std::to_string(*card));
    if (render) {
      std::erase_if(nodes, [](const std::string& n) { return n.starts_with("/dev/dri/renderD"); });
      nodes.insert("/dev/dri/renderD" + std::to_string(*render));
    }
    device.device_nodes.assign(nodes.begin(), nodes.end());
  }

  // GPU-<hex>; without a unique id (APUs have 0) PCI-<address>[-<serial>]; else empty.
  static std::string WholeId(std::uint64_t unique_id, const Device& device) {
    if (unique_id != 0) return AmdUniqueName(unique_id);
    if (!device.pci_address.known()) return {};
    std::string id = "PCI-" + device.pci_address.value;
    if (device.serial.known()) id += "-" + device.serial.value.substr(0, 40);
    return id;
  }

  // A GPU of the device tree that KFD does not list.
  void AddCardDevice(const AmdCard& card) {
    Device device = BlankDevice(&card);
    device.index = static_cast<int>(devices_.size());
    device.pci_address = Reading<std::string>::Of(card.pci.address);
    device.compute_units = Reading<std::int64_t>::Unknown("no kfd node tells it");
    device.id.value = WholeId(card.unique_id, device);
    SetNodes(device, card.pci.card, card.pci.render);
    report_.telemetry[device.id.value] = card.telemetry;
    const std::string driver = card.pci.driver.known() ? card.pci.driver.value : "amdgpu";
    if (driver.empty()) {
      device.healthy = Reading<bool>::Of(false, "no driver is bound to it");
      Add("DriverNotBound", Severity::kError, device.id.value,
          "PCI device " + card.pci.address + " has no driver",
          "load amdgpu; look in the kernel log for why it refused the device");
    } else if (driver != "amdgpu") {
      device.healthy = Reading<bool>::Of(false, "it is bound to the driver " + driver);
      Add("DriverConflict", Severity::kWarning, device.id.value,
          "PCI device " + card.pci.address + " is bound to " + driver,
          "bind it to amdgpu, or leave it to " + driver + " on purpose");
    } else {
      ++tree_only_;
      if (!kfd_.unreadable.empty()) {
        device.healthy = Reading<bool>::Unknown("kfd has nodes that cannot be read");
      } else {
        device.healthy = Reading<bool>::Of(
            false, kfd_.present ? "kfd does not list it" : "kfd is missing: " + kfd_.why);
      }
    }
    Insert(std::move(device), "PCI device " + card.pci.address);
  }

  // Partitions of the device tree that no KFD node names. In SPX mode the driver keeps the entries
  // although no partition stands behind them.
  void AddPartitionEntries() {
    if (AllModesKnown()) return;
    for (const auto& [number, entry] : entries_) {
      if (entry.render && seen_renders_.contains(static_cast<std::uint64_t>(*entry.render))) {
        continue;
      }
      // Without a render node an entry cannot be told from one that KFD lists.
      if (!entry.render && !kfd_.gpus.empty()) continue;
      const AmdCard* parent = nullptr;
      for (const AmdCard& card : cards_) {
        if (entry.render && card.pci.render && *card.pci.render < *entry.render &&
            (parent == nullptr || *card.pci.render > *parent->pci.render)) {
          parent = &card;
        }
      }
      Device device;
      device.vendor = Vendor::kAmd;
      device.id.value = "XCP-" + std::to_string(number);
      if (parent != nullptr && *entry.render - *parent->pci.render < 8) {
        device = BlankDevice(parent);
        device.pci_address = Reading<std::string>::Of(parent->pci.address);
        device.memory_bytes = Reading<std::int64_t>::Unknown("no kfd node tells it");
        device.parent = Reading<std::string>::Of(WholeId(parent->unique_id, device));
        device.id.value =
            device.parent.value + "-p" + std::to_string(*entry.render - *parent->pci.render);
      }
      device.driver = report_.facts["driver"];
      device.index = static_cast<int>(devices_.size());
      SetNodes(device, std::nullopt, entry.render);
      device.healthy = Reading<bool>::Of(false, "kfd does not list this partition");
      Insert(std::move(device), "platform device amdgpu_xcp " + std::to_string(number));
    }
  }

  bool AllModesKnown() const {
    return !cards_.empty() && std::all_of(cards_.begin(), cards_.end(), [](const AmdCard& card) {
      return card.compute_mode.known();
    });
  }

  void Insert(Device device, const std::string& where) {
    const std::string id = device.id.value;
    const auto [at, added] = devices_.emplace(id, std::move(device));
    if (added) {
      origin_[id] = where;
      return;
    }
    Add("DuplicateDevice", Severity::kError, id, origin_[id] + " and " + where + " have one id",
        "report it with the kernel version; the device is counted once");
  }

  // Links between whole GPUs, as the KFD node of each GPU (in a partition mode: of its first
  // partition) tells them; partitions of one GPU share its links, and links inside it are none.
  void AddLinks() {
    std::map<std::string, Reading<std::vector<DeviceLink>>> of_gpu;
    for (const KfdGpu& gpu : kfd_.gpus) {
      const auto whole = node_gpu_.find(gpu.node);
      const auto device = node_device_.find(gpu.node);
      if (whole == node_gpu_.end() || device == node_device_.end()) continue;
      auto [links, fresh] = of_gpu.try_emplace(whole->second);
      if (fresh) links->second = LinksOf(gpu, whole->second);
      const auto found = devices_.find(device->second);
      if (found != devices_.end()) found->second.links = links->second;
    }
  }

  Reading<std::vector<DeviceLink>> LinksOf(const KfdGpu& gpu, const std::string& whole) const {
    using Links = std::vector<DeviceLink>;
    const auto ends = ReadKfdLinks(files_, gpu.node);
    if (!ends.known()) return SameGap<Links>(ends);
    std::set<std::pair<std::string, std::string>> bundles;  // kind and peer
    for (const KfdLink& end : ends.value) {
      const auto peer = node_gpu_.find(end.to);
      // A node that is no GPU of ours is a CPU, or hidden from us: no link to tell of.
      if (peer == node_gpu_.end() || peer->second == whole) continue;
      const char* kind = end.type == KfdLink::Type::kXgmi   ? "xgmi"
                         : end.type == KfdLink::Type::kPcie ? "pcie"
                                                            : "other";
      bundles.emplace(kind, peer->second);
    }
    Links out;
    for (const auto& [kind, peer] : bundles) out.push_back({kind, peer, 1, 1});
    MarkDown(CardOf(gpu), out);
    return Reading<Links>::Of(std::move(out));
  }

  // The driver counts XGMI links that are up, and not which they are: where some are down, all are
  // told as one bundle.
  static void MarkDown(const AmdCard* card, std::vector<DeviceLink>& links) {
    if (card == nullptr || !card->xgmi_links_up) return;
    const auto is_xgmi = [](const DeviceLink& link) { return link.kind == "xgmi"; };
    const auto count = std::count_if(links.begin(), links.end(), is_xgmi);
    if (*card->xgmi_links_up >= count) return;
    std::erase_if(links, is_xgmi);
    links.push_back({"xgmi", "", count, *card->xgmi_links_up});
  }

  // How many devices the tree says there are; nothing where it does not tell.
  std::optional<std::size_t> TreeCount() const {
    if (!tree_present_) return std::nullopt;
    std::size_t count = 0;
    bool modes = false;
    for (const AmdCard& card : cards_) {
      if (card.pci.driver.known() && card.pci.driver.value != "amdgpu") continue;
      if (!card.compute_mode.known()) {
        ++count;
        continue;
      }
      modes = true;
      const auto partitions = PartitionsInMode(card);
      if (!partitions) return std::nullopt;
      count += *partitions;
    }
    return modes ? count : count + entries_.size();
  }

  void CheckTopology() {
    if (!kfd_.present && tree_only_ > 0) {
      Add("KfdMissing", Severity::kError, "",
          std::to_string(tree_only_) + " GPUs are bound to amdgpu, but " + kfd_.why,
          "the kernel needs CONFIG_HSA_AMD; look for 'kfd' in the kernel log");
    }
    if (!kfd_.unreadable.empty()) {
      std::string all;
      for (const std::string& node : kfd_.unreadable) all += (all.empty() ? "" : "; ") + node;
      Add("KfdNodeUnreadable", Severity::kWarning, "", all,
          "the agent must see all devices: run it privileged or without a device cgroup");
    }
    if (auto changed = TopologyFinding(kfd_)) report_.findings.push_back(std::move(*changed));
  }

  void CheckCounts() {
    const auto tree = TreeCount();
    if (!tree || !kfd_.present || !kfd_.unreadable.empty() || kfd_.changed) return;
    if (*tree == kfd_.gpus.size()) return;
    Add("InventoryInconsistent", Severity::kError, "",
        "the device tree has " + std::to_string(*tree) + " devices, kfd has " +
            std::to_string(kfd_.gpus.size()),
        "look for 'kfd' and 'amdgpu' in the kernel log: a GPU was refused or lost");
  }

  // All GPUs of a node are cut alike; one with fewer partitions than its siblings has lost some.
  void CheckPartitionCounts() {
    std::size_t most = 0;
    for (const auto& [id, count] : partitions_of_) most = std::max(most, count);
    for (const auto& [id, count] : partitions_of_) {
      if (count == most) continue;
      Add("PartitionCountDiffers", Severity::kWarning, id,
          "it shows " + std::to_string(count) + " partitions, another GPU of the node " +
              std::to_string(most),
          "look whether a device cgroup hides a partition; else set the partition mode again");
    }
  }

  RootFiles files_;
  ReadProgress& progress_;
  SourceReport report_;
  KfdTopology kfd_;
  bool tree_present_ = false;
  std::vector<AmdCard> cards_;
  std::map<int, PartitionEntry> entries_;
  std::map<KfdGpu::Location, std::set<std::uint64_t>> functions_;
  std::map<std::string, std::size_t> partitions_of_;
  std::set<std::string> seen_cards_;
  std::set<std::uint64_t> seen_renders_;
  std::map<std::string, Device> devices_;
  std::map<std::string, std::string> origin_;
  std::map<int, std::string> node_gpu_;     // KFD node -> id of the whole GPU
  std::map<int, std::string> node_device_;  // KFD node -> id of the device
  std::size_t tree_only_ = 0;
};

class AmdSource final : public DeviceSource {
 public:
  explicit AmdSource(std::string root) : root_(std::move(root)) {}
  SourceReport Read(ReadProgress& progress) override { return AmdReader(root_, progress).Read(); }

 private:
  std::string root_;
};

}  // namespace

std::unique_ptr<DeviceSource> MakeAmdSource(const std::string& root) {
  return std::make_unique<AmdSource>(root);
}

}  // namespace bimetal::agent
