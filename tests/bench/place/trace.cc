#include "tests/bench/place/trace.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

namespace bimetal::place {
namespace {

using core::placement::EngineNode;
using core::placement::PodShape;

constexpr std::int64_t kMi = 1 << 20;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> Number(std::string_view text) {
  if (text.ends_with(".0")) text.remove_suffix(2);
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Hands every row but the first to `row`, which says whether it could read it.
template <class Row>
Status ReadCsv(const std::filesystem::path& file, const Row& row) {
  std::ifstream in(file);
  if (!in) return Fail(ErrorCode::kNotFound, "cannot open " + file.string());
  std::string line;
  std::getline(in, line);
  for (int number = 2; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || row(Split(line, ','))) continue;
    return Fail(ErrorCode::kData, file.string() + ":" + std::to_string(number) + ": cannot read");
  }
  return {};
}

std::optional<EngineNode> NodeOf(const std::vector<std::string_view>& cells) {
  if (cells.size() < 5) return std::nullopt;
  const auto cpu = Number(cells[1]), memory = Number(cells[2]), devices = Number(cells[3]);
  if (!cpu || !memory || !devices) return std::nullopt;
  return EngineNode{
      .name = std::string(cells[0]),
      .capacity = {.cpu_milli = *cpu, .memory_bytes = *memory * kMi, .pods = 1'000'000},
      .kind = {.vendor = core::Vendor::kNvidia, .model = std::string(cells[4])},
      .devices = *devices};
}

std::optional<TracePod> PodOf(const std::vector<std::string_view>& cells) {
  if (cells.size() < 5) return std::nullopt;
  const auto cpu = Number(cells[1]), memory = Number(cells[2]), devices = Number(cells[3]);
  if (!cpu || !memory || !devices) return std::nullopt;
  TracePod pod{.name = std::string(cells[0]), .shape = {}, .run_seconds = {}};
  pod.shape.need = {.cpu_milli = *cpu, .memory_bytes = *memory * kMi, .pods = 1};
  pod.shape.devices = *devices;
  if (*devices > 0) {
    const auto each = Number(cells[4]);
    if (!each) return std::nullopt;
    pod.shape.each = MilliDevice{*each};
    if (cells.size() > 5 && !cells[5].empty()) {
      for (const std::string_view model : Split(cells[5], '|')) {
        pod.shape.models.emplace_back(model);
      }
      std::sort(pod.shape.models.begin(), pod.shape.models.end());
      pod.shape.models.erase(std::unique(pod.shape.models.begin(), pod.shape.models.end()),
                             pod.shape.models.end());
    }
  }
  if (cells.size() > 10 && !cells[10].empty()) {
    const auto ended = Number(cells[9]), started = Number(cells[10]);
    if (!ended || !started) return std::nullopt;
    pod.run_seconds = *ended - *started;
  }
  return pod;
}

std::uint64_t Hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace

Result<Trace> LoadTrace(const std::filesystem::path& folder, const std::string& list) {
  Trace trace;
  BIMETAL_TRY(ReadCsv(folder / "openb_node_list_gpu_node.csv", [&](const auto& cells) {
    const auto node = NodeOf(cells);
    if (node) trace.nodes.push_back(*node);
    return node.has_value();
  }));
  BIMETAL_TRY(ReadCsv(folder / ("openb_pod_list_" + list + ".csv"), [&](const auto& cells) {
    const auto pod = PodOf(cells);
    if (pod) trace.pods.push_back(*pod);
    return pod.has_value();
  }));
  std::sort(trace.pods.begin(), trace.pods.end(),
            [](const TracePod& a, const TracePod& b) { return a.name < b.name; });
  return trace;
}

void MakeTwoVendors(Trace* trace) {
  int count = 0;
  for (EngineNode& node : trace->nodes) {
    if (node.kind.model != "G2" && node.kind.model != "G3") continue;
    if (count++ % 2 == 1) node.kind.vendor = core::Vendor::kAmd;
  }
  for (TracePod& pod : trace->pods) {
    if (pod.shape.devices == 0) continue;
    const std::uint64_t draw = Hash(pod.name) % 100;
    if (draw < 40) {
      pod.shape.vendor = core::Vendor::kNvidia;
    } else if (draw < 60) {
      pod.shape.vendor = core::Vendor::kAmd;
    }
  }
}

std::int64_t CapacityOf(const std::vector<EngineNode>& nodes) {
  std::int64_t devices = 0;
  for (const EngineNode& node : nodes) devices += node.devices;
  return devices * kWholeDevice.v;
}

core::placement::Mix MixOf(const std::vector<TracePod>& pods) {
  core::placement::Mix mix;
  for (const TracePod& pod : pods) ++mix[pod.shape];
  return mix;
}

}  // namespace bimetal::place
