#include "agent/devices/amd/kfd.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace bimetal::agent {
namespace {

constexpr char kTopology[] = "sys/class/kfd/kfd/topology";

// Lines "key value", decimal and unsigned; a line of another form is left out.
std::map<std::string, std::uint64_t> ParseProperties(std::string_view text) {
  std::map<std::string, std::uint64_t> properties;
  for (const std::string_view line : Lines(text)) {
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const auto value = ParseUnsigned(Trim(line.substr(space + 1)));
    if (value) properties[std::string(line.substr(0, space))] = *value;
  }
  return properties;
}

// Sum of the frame-buffer banks (heap type 1 public, 2 private); 0 means system memory.
Reading<std::int64_t> ReadMemory(const RootFiles& files, const std::string& node,
                                 const std::map<std::string, std::uint64_t>& properties) {
  const auto banks = files.List(node + "/mem_banks");
  std::uint64_t total = 0;
  for (const std::string& bank : banks.value) {
    const auto text = files.Text(node + "/mem_banks/" + bank + "/properties");
    if (!text.known()) return SameGap<std::int64_t>(text);
    auto bank_properties = ParseProperties(text.value);
    const std::uint64_t heap = bank_properties["heap_type"];
    if (heap == 1 || heap == 2) total += bank_properties["size_in_bytes"];
  }
  if (total == 0) {
    const auto local = properties.find("local_mem_size");
    if (local != properties.end()) total = local->second;
  }
  if (total == 0 || total > INT64_MAX) {
    return Reading<std::int64_t>::Unknown("kfd tells no memory size");
  }
  return Reading<std::int64_t>::Of(static_cast<std::int64_t>(total));
}

void ReadNode(const RootFiles& files, const std::string& name, KfdTopology& out) {
  const auto number = ParseUnsigned(name);
  if (!number || *number > 100'000) return;
  const std::string folder = std::string(kTopology) + "/nodes/" + name;
  const auto text = files.Text(folder + "/properties");
  if (!text.known()) {
    out.unreadable.push_back("node " + name + ": " + text.why);
    return;
  }
  KfdGpu gpu;
  gpu.node = static_cast<int>(*number);
  gpu.properties = ParseProperties(text.value);
  if (!gpu.Get("simd_count") && !gpu.Get("cpu_cores_count")) {
    out.unreadable.push_back("node " + name + ": properties are cut off or corrupt");
    return;
  }
  const auto gpu_id = files.Number(folder + "/gpu_id");
  const bool is_gpu = gpu.Get("simd_count").value_or(0) != 0 || (gpu_id.known() && gpu_id.value);
  constexpr std::uint64_t kAmd = 4098;
  if (!is_gpu || gpu.Get("vendor_id").value_or(kAmd) != kAmd) return;
  if (gpu_id.known() && gpu_id.value > 0) gpu.gpu_id = static_cast<std::uint64_t>(gpu_id.value);
  gpu.memory_bytes = ReadMemory(files, folder, gpu.properties);
  out.gpus.push_back(std::move(gpu));
}

KfdTopology ReadOnce(const RootFiles& files, const KfdGeneration& generation) {
  KfdTopology out;
  const auto before = generation();
  const auto nodes = files.List(std::string(kTopology) + "/nodes");
  if (!nodes.known()) {
    out.why = nodes.why;
    return out;
  }
  out.present = true;
  for (const std::string& name : nodes.value) ReadNode(files, name, out);
  std::sort(out.gpus.begin(), out.gpus.end(),
            [](const KfdGpu& a, const KfdGpu& b) { return a.node < b.node; });
  out.changed = generation() != before;
  return out;
}

}  // namespace

std::optional<std::uint64_t> KfdGpu::Get(const std::string& key) const {
  const auto found = properties.find(key);
  if (found == properties.end()) return std::nullopt;
  return found->second;
}

std::optional<KfdGpu::Location> KfdGpu::Where() const {
  const auto location = Get("location_id");
  if (!location) return std::nullopt;
  return Location{Get("domain").value_or(0), (*location >> 8) & 0xff, (*location >> 3) & 0x1f,
                  *location & 7};
}

std::string KfdGpu::Location::Address() const {
  std::array<char, 64> text;
  const int n = std::snprintf(
      text.data(), text.size(), "%04llx:%02llx:%02llx.%llu",
      static_cast<unsigned long long>(domain), static_cast<unsigned long long>(bus),
      static_cast<unsigned long long>(device), static_cast<unsigned long long>(function));
  return std::string(text.data(), static_cast<std::size_t>(n));
}

Reading<std::vector<KfdLink>> ReadKfdLinks(const RootFiles& files, int node) {
  using Links = std::vector<KfdLink>;
  const std::string folder =
      std::string(kTopology) + "/nodes/" + std::to_string(node) + "/io_links";
  const auto names = files.List(folder);
  if (!names.known()) return SameGap<Links>(names);
  Links out;
  for (const std::string& name : names.value) {
    if (!ParseUnsigned(name)) continue;
    const auto text = files.Text(folder + "/" + name + "/properties");
    if (!text.known()) return Reading<Links>::Failed(text.why);
    const auto properties = ParseProperties(text.value);
    const auto type = properties.find("type");
    const auto to = properties.find("node_to");
    if (type == properties.end() || to == properties.end() || to->second > 100'000) {
      return Reading<Links>::Failed("no link in " + folder + "/" + name);
    }
    // KFD's numbers; rocm_smi and amdsmi count otherwise.
    const auto kind = type->second == 11  ? KfdLink::Type::kXgmi
                      : type->second == 2 ? KfdLink::Type::kPcie
                                          : KfdLink::Type::kOther;
    out.push_back({kind, static_cast<int>(to->second)});
  }
  return Reading<Links>::Of(std::move(out));
}

KfdTopology ReadKfd(const RootFiles& files) {
  return ReadKfd(files, [&] { return files.Text(std::string(kTopology) + "/generation_id"); });
}

KfdTopology ReadKfd(const RootFiles& files, const KfdGeneration& generation) {
  KfdTopology topology = ReadOnce(files, generation);
  return topology.changed ? ReadOnce(files, generation) : topology;
}

std::optional<Finding> TopologyFinding(const KfdTopology& topology) {
  if (!topology.changed) return std::nullopt;
  return Finding{"TopologyChanged",
                 Severity::kWarning,
                 "",
                 "the kfd topology changed during two reads",
                 "wait: it is read again; look for GPU resets in the kernel log where it stays",
                 ""};
}

std::string GfxTarget(std::uint64_t version) {
  if (version == 0) return {};
  std::array<char, 48> text;
  const int n = std::snprintf(text.data(), text.size(), "gfx%llu%llx%llx",
                              static_cast<unsigned long long>(version / 10000),
                              static_cast<unsigned long long>(version / 100 % 100),
                              static_cast<unsigned long long>(version % 100));
  return std::string(text.data(), static_cast<std::size_t>(n));
}

}  // namespace bimetal::agent
