#include "tests/unit/machines/smi_text.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace bimetal::machines {
namespace {

std::string Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

// "16x", "81559 MiB", "100.89 W": the number, times `scale`.
std::string Scaled(const std::string& value, double scale) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end == value.c_str()) return {};
  return std::to_string(std::llround(number * scale));
}

class Answers {
 public:
  Answers(const std::map<std::string, std::string>& values, std::string prefix)
      : values_(values), prefix_(std::move(prefix)) {}

  std::string Value(const std::string& path) const {
    const auto found = values_.find(path);
    return found == values_.end() || found->second == "N/A" ? std::string() : found->second;
  }
  void Put(const std::string& key, const std::string& value) {
    if (!value.empty()) out_ += prefix_ + key + " " + value + "\n";
  }
  void Text(const std::string& key, const std::string& path) { Put(key, Value(path)); }
  void Number(const std::string& key, const std::string& path, double scale = 1) {
    Put(key, Scaled(Value(path), scale));
  }
  // 1 where the value is `yes`, 0 where it is another, nothing where there is none.
  std::string Flag(const std::string& path, const std::string& yes) const {
    const std::string value = Value(path);
    return value.empty() ? value : value == yes ? "1" : "0";
  }
  const std::string& out() const { return out_; }

 private:
  const std::map<std::string, std::string>& values_;
  std::string prefix_;
  std::string out_;
};

constexpr double kMiB = 1048576;

void AddErrors(Answers& answers) {
  const std::string mode = answers.Flag("ECC Mode/Current", "Enabled");
  answers.Put("ecc", mode);
  if (mode != "1") return;
  long uncorrected = 0;
  long corrected = 0;
  bool any = false;
  for (const std::string kind : {"SRAM", "DRAM"}) {
    for (const std::string name :
         {" Uncorrectable", " Uncorrectable Parity", " Uncorrectable SEC-DED", " Correctable"}) {
      const std::string value = answers.Value("ECC Errors/Volatile/" + kind + name);
      if (value.empty()) continue;
      any = true;
      (name == " Correctable" ? corrected : uncorrected) += std::strtol(value.c_str(), nullptr, 10);
    }
  }
  if (!any) return;
  answers.Put("ecc_uncorrected", std::to_string(uncorrected));
  answers.Put("ecc_corrected", std::to_string(corrected));
}

void AddReasons(Answers& answers) {
  std::string base = "Clocks Event Reasons/";
  if (answers.Value(base + "Idle").empty()) base = "Clocks Throttle Reasons/";
  if (answers.Value(base + "Idle").empty()) return;
  const std::vector<std::pair<std::string, int>> bits = {
      {"Idle", 0x1},
      {"SW Power Cap", 0x4},
      {"SW Power Capping", 0x4},
      {"HW Slowdown", 0x8},
      {"SW Thermal Slowdown", 0x20},
      {"HW Slowdown/HW Thermal Slowdown", 0x40},
      {"HW Slowdown/HW Power Brake Slowdown", 0x80}};
  int word = 0;
  for (const auto& [name, bit] : bits) {
    if (answers.Value(base + name) == "Active") word |= bit;
  }
  answers.Put("clock_reasons", std::to_string(word));
}

void AddRows(Answers& answers) {
  const std::string fixed = answers.Value("Remapped Rows/Correctable Error");
  if (!fixed.empty()) {
    answers.Put("remapped", fixed + " " + answers.Value("Remapped Rows/Uncorrectable Error") + " " +
                                answers.Flag("Remapped Rows/Pending", "Yes") + " " +
                                answers.Flag("Remapped Rows/Remapping Failure Occurred", "Yes"));
  }
  answers.Text("retired 0", "Retired Pages/Single Bit ECC");
  answers.Text("retired 1", "Retired Pages/Double Bit ECC");
  answers.Put("retired_pending", answers.Flag("Retired Pages/Pending", "Yes"));
}

std::string OfGpu(const SmiGpu& gpu, std::size_t index, int nvlinks) {
  Answers answers(gpu.values, "device " + std::to_string(index) + " ");
  answers.Text("name", "Product Name");
  answers.Text("uuid", "GPU UUID");
  answers.Text("serial", "Serial Number");
  answers.Text("minor", "Minor Number");
  answers.Text("vbios", "VBIOS Version");
  answers.Text("inforom", "Inforom Version/Image Version");
  answers.Text("gsp", "GSP Firmware Version");
  answers.Text("pci", "PCI/Bus Id");
  answers.Text("pci_id", "PCI/Device Id");
  const std::string link = "PCI/GPU Link Info/";
  answers.Number("link_generation", link + "PCIe Generation/Current");
  answers.Number("link_generation_max", link + "PCIe Generation/Max");
  answers.Number("link_width", link + "Link Width/Current");
  answers.Number("link_width_max", link + "Link Width/Max");
  answers.Number("replays", "PCI/Replays Since Reset");
  answers.Number("memory", "FB Memory Usage/Total", kMiB);
  answers.Number("memory_used", "FB Memory Usage/Used", kMiB);
  answers.Number("temperature", "Temperature/GPU Current Temp");
  answers.Number("memory_temperature", "Temperature/Memory Current Temp");
  answers.Number("power", "GPU Power Readings/Power Draw", 1000);
  answers.Number("power", "GPU Power Readings/Average Power Draw", 1000);
  answers.Number("power_limit", "GPU Power Readings/Current Power Limit", 1000);
  answers.Number("power_limit", "GPU Power Readings/GPU Ceiling Power Limit/Current Power Limit",
                 1000);
  answers.Number("clock 0", "Clocks/Graphics");
  answers.Number("clock 2", "Clocks/Memory");
  answers.Number("utilization", "Utilization/Gpu");
  answers.Number("utilization", "Utilization/GPU");
  answers.Put("mig", answers.Flag("MIG Mode/Current", "Enabled"));
  AddErrors(answers);
  AddReasons(answers);
  AddRows(answers);
  if (answers.Value("GPU Recovery Action") == "None") answers.Put("recovery_action", "0");
  if (answers.Value("Fabric/State") == "Completed") answers.Put("fabric", "3");
  if (answers.Value("Processes") == "None") answers.Put("processes", "none");
  for (int n = 0; n < nvlinks; ++n) answers.Put("nvlink " + std::to_string(n), "1");
  return answers.out();
}

std::size_t Indent(const std::string& line) {
  const auto at = line.find_first_not_of(" \t");
  return at == std::string::npos ? line.size() : at;
}

// Follows the indentation of one GPU's lines.
class PathReader {
 public:
  void Take(const std::string& line, SmiGpu& gpu) {
    const std::size_t indent = Indent(line);
    while (!open_.empty() && open_.back().first >= indent) open_.pop_back();
    const auto colon = line.find(" :");
    const std::string key = Trimmed(line.substr(0, colon));
    if (open_.empty() && key == "MIG Device") {
      gpu.instances.emplace_back();
      in_instance_ = true;
    } else if (open_.empty()) {
      in_instance_ = false;
    }
    std::string path;
    for (const auto& [unused, name] : open_) path += name + "/";
    path += key;
    if (colon != std::string::npos) {
      auto& values = in_instance_ ? gpu.instances.back() : gpu.values;
      values.emplace(path, Trimmed(line.substr(colon + 2)));
    }
    open_.emplace_back(indent, key);
  }

 private:
  std::vector<std::pair<std::size_t, std::string>> open_;
  bool in_instance_ = false;
};

}  // namespace

SmiText ParseSmiText(std::string_view text) {
  SmiText out;
  std::istringstream in{std::string(text)};
  bool inside = false;
  PathReader reader;
  for (std::string line; std::getline(in, line);) {
    if (line.find("NVSMI LOG") != std::string::npos) {
      if (inside) break;
      inside = true;
      continue;
    }
    if (!inside || Trimmed(line).empty()) continue;
    if (line.starts_with("#")) break;  // the next section of a capture
    const auto colon = line.find(" :");
    if (line.starts_with("Driver Version")) {
      out.driver = Trimmed(line.substr(colon + 2));
      out.driver = out.driver.substr(0, out.driver.find(' '));  // 610 adds a remark
    }
    if (line.starts_with("CUDA")) out.cuda = Trimmed(line.substr(colon + 2));
    if (line.starts_with("GPU 0")) {
      out.gpus.emplace_back();
      reader = PathReader();
    } else if (!out.gpus.empty() && line.front() == ' ') {
      reader.Take(line, out.gpus.back());
    }
  }
  return out;
}

SmiExtras ParseSmiExtras(std::string_view text) {
  SmiExtras out;
  std::istringstream in{std::string(text)};
  bool listed = false;
  for (std::string line; std::getline(in, line);) {
    const std::string words = Trimmed(line);
    const auto uuid = words.find("(UUID: ");
    // "MIG 3g.40gb     Device  0: (UUID: MIG-...)"
    if (!listed && words.starts_with("MIG ") && uuid != std::string::npos) {
      out.instance_profiles.push_back(words.substr(4, words.find(' ', 4) - 4));
      out.instance_uuids.push_back(words.substr(uuid + 7, words.size() - uuid - 8));
    }
    if (words.starts_with("# $ nvidia-smi topo")) listed = true;
    if (words.starts_with("Link ") && words.ends_with("GB/s")) ++out.nvlinks;
  }
  return out;
}

std::string NvmlTextOf(const SmiText& smi, const SmiExtras& extras) {
  std::string out;
  if (!smi.driver.empty()) {
    out += "system driver " + smi.driver + "\nsystem nvml 13." + smi.driver + "\n";
  }
  int major = 0;
  int minor = 0;
  std::sscanf(smi.cuda.c_str(), "%d.%d", &major, &minor);
  out += "system cuda " + std::to_string(major * 1000 + minor * 10) + "\n";
  out += "system count " + std::to_string(smi.gpus.size()) + "\n";
  for (std::size_t i = 0; i < smi.gpus.size(); ++i) {
    out += OfGpu(smi.gpus[i], i, extras.nvlinks);
    const auto& instances = smi.gpus[i].instances;
    for (std::size_t n = 0; n < instances.size() && n < extras.instance_uuids.size(); ++n) {
      Answers answers(instances[n], "mig " + std::to_string(i) + " " + std::to_string(n) + " ");
      answers.Put("uuid", extras.instance_uuids[n]);
      const std::string& profile = extras.instance_profiles[n];
      answers.Put("name", smi.gpus[i].values.at("Product Name") +
                              (profile.empty() ? "" : " MIG " + profile));
      answers.Number("multiprocessors", "MIG Device/Device Attributes/Shared/Multiprocessor count");
      answers.Number("memory", "MIG Device/Shared FB Memory Usage/Total", kMiB);
      answers.Number("memory", "MIG Device/FB Memory Usage/Total", kMiB);
      answers.Number("memory_used", "MIG Device/Shared FB Memory Usage/Used", kMiB);
      answers.Number("memory_used", "MIG Device/FB Memory Usage/Used", kMiB);
      out += answers.out();
    }
  }
  return out;
}

}  // namespace bimetal::machines
