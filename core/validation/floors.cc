#include "core/validation/floors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/base/result.h"

namespace bimetal::core::validation {
namespace {

// Of a link's peak, as the floor of pinned copies.
constexpr std::int64_t kLinkPercent = 75;
constexpr std::string_view kLinkSource = "0.75 of the PCIe link as negotiated";

constexpr std::size_t kModelFields = 6;
constexpr std::size_t kFloorFields = 12;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// The parts of `text` between `separator`s; the last takes the rest where `limit` is reached.
std::vector<std::string> Split(std::string_view text, char separator, std::size_t limit) {
  std::vector<std::string> parts;
  while (parts.size() + 1 < limit) {
    const auto at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.emplace_back(text);
  return parts;
}

// "10de:2330".
bool IsPciId(std::string_view text) {
  if (text.size() != 9 || text[4] != ':') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == ':' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

// A whole number above 0 in thousandths of the canonical unit; nothing for an empty field.
Result<std::optional<Milli>> Figure(const std::string& text) {
  if (text.empty()) return std::optional<Milli>();
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value <= 0 ||
      value > 1'000'000'000'000) {
    return Fail(ErrorCode::kData, "\"" + text.substr(0, 32) + "\" is no figure");
  }
  return std::optional<Milli>(Milli{value});
}

Result<ModelRow> ReadModel(const std::vector<std::string>& fields) {
  if (fields.size() != kModelFields) return Fail(ErrorCode::kData, "a model has 6 fields");
  ModelRow row;
  row.key = fields[1];
  row.vendor = fields[2];
  if (row.key.empty()) return Fail(ErrorCode::kData, "the model's key is empty");
  if (row.vendor != "nvidia" && row.vendor != "amd") {
    return Fail(ErrorCode::kData, "the vendor is neither nvidia nor amd");
  }
  row.pci_ids = Split(fields[3], ' ', fields[3].size() + 1);
  for (const std::string& id : row.pci_ids) {
    if (!IsPciId(id)) {
      return Fail(ErrorCode::kData, "\"" + id.substr(0, 32) + "\" is no PCI id like 10de:2330");
    }
  }
  row.names = Split(fields[4], ';', fields[4].size() + 1);
  for (const std::string& name : row.names) {
    if (name.empty()) return Fail(ErrorCode::kData, "a name of the model is empty");
  }
  return row;
}

Status CheckUnit(const std::string& check, const std::string& unit) {
  const auto known = FindRateCheck(check);
  if (!known) {
    return Fail(ErrorCode::kData, "\"" + check.substr(0, 32) + "\" is no check that measures");
  }
  const std::string_view wanted = known->unit == "GB/s"     ? "MB/s"
                                  : known->unit == "TFLOPS" ? "GFLOPS"
                                                            : "ns";
  if (unit != wanted) return Fail(ErrorCode::kData, "the unit is not " + std::string(wanted));
  return {};
}

Result<FloorRow> ReadFloor(const std::vector<std::string>& fields) {
  if (fields.size() != kFloorFields) return Fail(ErrorCode::kData, "a floor has 12 fields");
  FloorRow row;
  row.model = fields[1];
  row.check = fields[2];
  row.unit = fields[3];
  BIMETAL_TRY(CheckUnit(row.check, row.unit));
  BIMETAL_TRY_ASSIGN(const auto value, Figure(fields[4]));
  if (!value) return Fail(ErrorCode::kData, "the floor is empty");
  row.floor.value = *value;
  BIMETAL_TRY_ASSIGN(row.floor.peak, Figure(fields[5]));
  BIMETAL_TRY_ASSIGN(row.vendor_floor, Figure(fields[6]));
  if (fields[7] != "binding" && fields[7] != "advisory") {
    return Fail(ErrorCode::kData, "the kind is neither binding nor advisory");
  }
  row.floor.binding = fields[7] == "binding";
  if (fields[8].empty()) return Fail(ErrorCode::kData, "the source is empty");
  row.floor.source = fields[8] + (fields[9].empty() ? "" : " " + fields[9]);
  if (fields[10].empty()) return Fail(ErrorCode::kData, "the date is empty");
  row.date = fields[10];
  row.note = fields[11];
  return row;
}

Error AtLine(Error error, std::size_t line) {
  return WithContext(std::move(error), "floors, line " + std::to_string(line));
}

template <class Index>
Status Claim(Index& index, const typename Index::key_type& key, std::size_t place) {
  if (index.emplace(key, place).second) return {};
  return Fail(ErrorCode::kData, "it says again what an earlier line says");
}

}  // namespace

DeviceFacts FactsFromApi(const api::Device& device) {
  DeviceFacts facts;
  facts.id = device.id();
  facts.model = device.model();
  facts.pci_id = device.pci_id();
  facts.partition = device.partition();
  if (device.has_link_generation()) facts.link_generation = device.link_generation();
  if (device.has_link_width()) facts.link_width = device.link_width();
  if (device.has_link_generation_max()) facts.link_generation_max = device.link_generation_max();
  if (device.has_link_width_max()) facts.link_width_max = device.link_width_max();
  for (const api::Link& link : device.links()) {
    if (link.count() > 0 && (link.kind() == "nvlink" || link.kind() == "xgmi")) {
      facts.direct_links = true;
    }
  }
  return facts;
}

std::optional<DeviceFacts> FactsFromApi(const api::GPUNodeStatus& status, std::string_view vendor) {
  for (const api::DeviceStatus& device : status.devices()) {
    if (device.vendor() != vendor) continue;
    DeviceFacts facts;
    facts.model = device.model();
    facts.pci_id = device.pci_id();
    facts.partition = device.partition();
    return facts;
  }
  return std::nullopt;
}

bool IsWhole(const DeviceFacts& device) {
  return device.partition.empty() || device.partition == "off" || device.partition == "SPX" ||
         device.partition.starts_with("SPX/");
}

Result<FloorTable> FloorTable::Parse(std::string_view csv) {
  FloorTable table;
  std::size_t number = 0;
  for (const std::string& line : Split(csv, '\n', csv.size() + 2)) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const auto add = [&]() -> Status {
      if (line.starts_with("model,")) {
        BIMETAL_TRY_ASSIGN(ModelRow row, ReadModel(Split(line, ',', kModelFields)));
        const std::size_t place = table.models_.size();
        for (const ModelRow& known : table.models_) {
          if (known.key == row.key) return Fail(ErrorCode::kData, "the model is there twice");
        }
        for (const std::string& id : row.pci_ids) BIMETAL_TRY(Claim(table.by_pci_, id, place));
        for (const std::string& name : row.names) BIMETAL_TRY(Claim(table.by_name_, name, place));
        table.models_.push_back(std::move(row));
        return {};
      }
      if (!line.starts_with("floor,")) return Fail(ErrorCode::kData, "neither model nor floor");
      BIMETAL_TRY_ASSIGN(FloorRow row, ReadFloor(Split(line, ',', kFloorFields)));
      const bool known = std::any_of(table.models_.begin(), table.models_.end(),
                                     [&](const ModelRow& model) { return model.key == row.model; });
      if (!known) return Fail(ErrorCode::kData, "no line before it tells of its model");
      BIMETAL_TRY(Claim(table.by_check_, std::pair(row.model, row.check), table.rows_.size()));
      table.rows_.push_back(std::move(row));
      return {};
    };
    if (Status added = add(); !added) return tl::unexpected(AtLine(added.error(), number));
  }
  return table;
}

FloorTable FloorTable::BuiltIn() {
  Result<FloorTable> table = Parse(FloorsCsv());
  BIMETAL_CHECK(table.has_value());
  return std::move(table).value();
}

const ModelRow* FloorTable::FindModel(const DeviceFacts& device) const {
  const auto by_pci = by_pci_.find(Lower(device.pci_id));
  if (by_pci != by_pci_.end()) return &models_[by_pci->second];
  const auto by_name = by_name_.find(device.model);
  return by_name == by_name_.end() ? nullptr : &models_[by_name->second];
}

const FloorRow* FloorTable::FindRow(const DeviceFacts& device, std::string_view check) const {
  const ModelRow* model = IsWhole(device) ? FindModel(device) : nullptr;
  if (model == nullptr) return nullptr;
  const auto found = by_check_.find(std::pair(model->key, std::string(check)));
  return found == by_check_.end() ? nullptr : &rows_[found->second];
}

Result<std::vector<FloorOverride>> OverridesFromApi(const api::ValidationProfileSpec& profile) {
  std::vector<FloorOverride> overrides;
  for (int i = 0; i < profile.floors_size(); ++i) {
    const api::Floor& floor = profile.floors(i);
    const std::string field = "floors[" + std::to_string(i) + "]";
    if (!FindRateCheck(floor.check())) {
      return Fail(ErrorCode::kInvalid, field + ".check: \"" + floor.check().substr(0, 63) +
                                           "\" is no check that measures a rate");
    }
    auto value = ParseMilli(floor.value());
    if (!value) return tl::unexpected(WithContext(value.error(), field + ".value"));
    overrides.push_back({floor.model(), floor.check(), *value,
                         floor.source().empty() ? "the pool's profile" : floor.source()});
  }
  return overrides;
}

std::optional<Floor> FindFloor(const FloorTable& table, const std::vector<FloorOverride>& overrides,
                               const DeviceFacts& device, std::string_view check) {
  const FloorRow* row = table.FindRow(device, check);
  // The last one counts, as with every list that may name a thing twice.
  for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
    const bool named = (!device.model.empty() && it->model == device.model) ||
                       (!device.pci_id.empty() && Lower(it->model) == Lower(device.pci_id));
    if (!named || it->check != check) continue;
    if (it->value.v == 0) return std::nullopt;
    return Floor{it->value, it->source, true, row == nullptr ? std::nullopt : row->floor.peak};
  }
  if (check == "host-to-device" || check == "device-to-host") {
    if (!IsWhole(device) || !device.link_generation || !device.link_width) return std::nullopt;
    const auto peak = LinkPeak(*device.link_generation, *device.link_width);
    if (!peak) return std::nullopt;
    return Floor{Milli{peak->v * kLinkPercent / 100}, std::string(kLinkSource), true, std::nullopt};
  }
  if (row == nullptr) return std::nullopt;
  // The public figures are of direct links; over PCIe a device owes nothing.
  if (check == "peer-to-peer" && !device.direct_links) return std::nullopt;
  return row->floor;
}

std::optional<Milli> LinkPeak(int generation, int width) {
  // MB/s a lane and direction: 2.5, 5, 8, 16, 32, 64 GT/s less the line code.
  constexpr std::array<std::int64_t, 6> kLane = {250, 500, 985, 1969, 3938, 7563};
  if (generation < 1 || generation > 6 || width < 1 || width > 32) return std::nullopt;
  return Milli{kLane[static_cast<std::size_t>(generation - 1)] * width};
}

}  // namespace bimetal::core::validation
