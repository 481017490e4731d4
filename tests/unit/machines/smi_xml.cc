#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/machines/smi_text.h"

namespace bimetal::machines {
namespace {

// Where the XML has what the text has under another path; of two names of one thing both stand.
constexpr std::array<std::pair<std::string_view, std::string_view>, 40> kPaths = {{
    {"product_name", "Product Name"},
    {"uuid", "GPU UUID"},
    {"serial", "Serial Number"},
    {"minor_number", "Minor Number"},
    {"vbios_version", "VBIOS Version"},
    {"inforom_version/img_version", "Inforom Version/Image Version"},
    {"gsp_firmware_version", "GSP Firmware Version"},
    {"pci/pci_bus_id", "PCI/Bus Id"},
    {"pci/pci_device_id", "PCI/Device Id"},
    {"pci/pci_gpu_link_info/pcie_gen/max_link_gen", "PCI/GPU Link Info/PCIe Generation/Max"},
    {"pci/pci_gpu_link_info/pcie_gen/current_link_gen",
     "PCI/GPU Link Info/PCIe Generation/Current"},
    {"pci/pci_gpu_link_info/link_widths/max_link_width", "PCI/GPU Link Info/Link Width/Max"},
    {"pci/pci_gpu_link_info/link_widths/current_link_width",
     "PCI/GPU Link Info/Link Width/Current"},
    {"pci/replay_counter", "PCI/Replays Since Reset"},
    {"fb_memory_usage/total", "FB Memory Usage/Total"},
    {"fb_memory_usage/used", "FB Memory Usage/Used"},
    {"temperature/gpu_temp", "Temperature/GPU Current Temp"},
    {"temperature/memory_temp", "Temperature/Memory Current Temp"},
    {"power_readings/power_draw", "GPU Power Readings/Power Draw"},
    {"gpu_power_readings/power_draw", "GPU Power Readings/Power Draw"},
    {"power_readings/enforced_power_limit", "GPU Power Readings/Current Power Limit"},
    {"gpu_power_readings/current_power_limit", "GPU Power Readings/Current Power Limit"},
    {"clocks/graphics_clock", "Clocks/Graphics"},
    {"clocks/mem_clock", "Clocks/Memory"},
    {"utilization/gpu_util", "Utilization/Gpu"},
    {"mig_mode/current_mig", "MIG Mode/Current"},
    {"ecc_mode/current_ecc", "ECC Mode/Current"},
    {"ecc_errors/volatile/sram_correctable", "ECC Errors/Volatile/SRAM Correctable"},
    {"ecc_errors/volatile/sram_uncorrectable", "ECC Errors/Volatile/SRAM Uncorrectable"},
    {"ecc_errors/volatile/sram_uncorrectable_parity",
     "ECC Errors/Volatile/SRAM Uncorrectable Parity"},
    {"ecc_errors/volatile/sram_uncorrectable_secded",
     "ECC Errors/Volatile/SRAM Uncorrectable SEC-DED"},
    {"ecc_errors/volatile/dram_correctable", "ECC Errors/Volatile/DRAM Correctable"},
    {"ecc_errors/volatile/dram_uncorrectable", "ECC Errors/Volatile/DRAM Uncorrectable"},
    {"remapped_rows/remapped_row_corr", "Remapped Rows/Correctable Error"},
    {"remapped_rows/remapped_row_unc", "Remapped Rows/Uncorrectable Error"},
    {"remapped_rows/remapped_row_pending", "Remapped Rows/Pending"},
    {"remapped_rows/remapped_row_failure", "Remapped Rows/Remapping Failure Occurred"},
    {"retired_pages/multiple_single_bit_retirement/retired_count", "Retired Pages/Single Bit ECC"},
    {"retired_pages/double_bit_retirement/retired_count", "Retired Pages/Double Bit ECC"},
    {"retired_pages/pending_retirement", "Retired Pages/Pending"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kReasons = {{
    {"gpu_idle", "Idle"},
    {"sw_power_cap", "SW Power Cap"},
    {"hw_slowdown", "HW Slowdown"},
    {"sw_thermal_slowdown", "SW Thermal Slowdown"},
    {"hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown"},
    {"hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kInstancePaths = {{
    {"device_attributes/shared/multiprocessor_count",
     "MIG Device/Device Attributes/Shared/Multiprocessor count"},
    {"fb_memory_usage/total", "MIG Device/FB Memory Usage/Total"},
    {"fb_memory_usage/used", "MIG Device/FB Memory Usage/Used"},
}};

// The elements of one file, in order, with the path of the elements around them.
class XmlWalker {
 public:
  explicit XmlWalker(std::string_view xml) : rest_(xml) {}

  // Takes the next tag. False at the end. `closed`: the tag ended an element that held only text.
  bool Next() {
    const auto open = rest_.find('<');
    if (open == std::string_view::npos) return false;
    const std::string_view before = rest_.substr(0, open);
    const auto close = rest_.find('>', open);
    if (close == std::string_view::npos) return false;
    const std::string_view tag = rest_.substr(open + 1, close - open - 1);
    rest_.remove_prefix(close + 1);
    leaf = false;
    ended.clear();
    if (tag.empty() || tag.front() == '?' || tag.front() == '!' || tag.back() == '/') return true;
    if (tag.front() == '/') {
      leaf = just_opened_;
      text = std::string(before);
      path = Join();
      ended = open_.empty() ? std::string() : open_.back();
      if (!open_.empty()) open_.pop_back();
      just_opened_ = false;
      return true;
    }
    open_.emplace_back(tag.substr(0, tag.find_first_of(" \t\n")));
    started = open_.back();
    just_opened_ = true;
    return true;
  }

  bool leaf = false;  // an element that held only text has ended: its text and path
  std::string text;
  std::string path;     // without the two outermost elements
  std::string ended;    // name of the element that has ended; empty: none
  std::string started;  // name of the last element that began

 private:
  std::string Join() const {
    std::string out;
    for (std::size_t i = 2; i < open_.size(); ++i) out += (i == 2 ? "" : "/") + open_[i];
    return out;
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  bool just_opened_ = false;
};

void TakeValue(const XmlWalker& xml, SmiGpu& gpu) {
  for (const auto& [from, to] : kPaths) {
    if (xml.path == from) gpu.values.emplace(to, xml.text);
  }
  for (const std::string word : {"throttle", "event"}) {
    const std::string base = "clocks_" + word + "_reasons/clocks_" + word + "_reason_";
    for (const auto& [from, to] : kReasons) {
      if (xml.path == base + std::string(from)) {
        gpu.values.emplace("Clocks Event Reasons/" + std::string(to), xml.text);
      }
    }
  }
}

void TakeInstanceValue(const XmlWalker& xml, std::map<std::string, std::string>& instance) {
  constexpr std::string_view kBase = "mig_devices/mig_device/";
  if (!xml.path.starts_with(kBase)) return;
  const std::string rest = xml.path.substr(kBase.size());
  for (const auto& [from, to] : kInstancePaths) {
    if (rest == from) instance.emplace(to, xml.text);
  }
  instance.emplace(rest, xml.text);
}

}  // namespace

SmiText ParseSmiXml(std::string_view text, SmiExtras& extras) {
  SmiText out;
  SmiGpu gpu;
  std::map<std::string, std::string> instance;
  XmlWalker xml(text);
  while (xml.Next()) {
    if (xml.leaf && xml.path.empty() && xml.ended == "driver_version") out.driver = xml.text;
    if (xml.leaf && xml.path.empty() && xml.ended == "cuda_version") out.cuda = xml.text;
    if (xml.leaf && !xml.path.empty()) {
      TakeValue(xml, gpu);
      TakeInstanceValue(xml, instance);
    }
    if (xml.ended == "mig_device") gpu.instances.push_back(std::exchange(instance, {}));
    if (xml.ended != "gpu") continue;
    // The XML names instances by number alone; drivers of that age made their ids of these.
    for (const auto& one : gpu.instances) {
      extras.instance_uuids.push_back("MIG-" + gpu.values["GPU UUID"] + "/" +
                                      one.at("gpu_instance_id") + "/" +
                                      one.at("compute_instance_id"));
      extras.instance_profiles.emplace_back();
    }
    out.gpus.push_back(std::exchange(gpu, {}));
  }
  return out;
}

}  // namespace bimetal::machines
