#include "agent/devices/data_tables.h"

#include <array>

#include "agent/devices/root_files.h"

namespace bimetal::agent {
namespace {

// The line's three fields; the last takes the rest of the line. Nothing for comments.
std::optional<std::array<std::string_view, 3>> Fields(std::string_view line) {
  const auto first = line.find(',');
  const auto second = line.find(',', first + 1);
  if (line.starts_with('#') || first == std::string_view::npos ||
      second == std::string_view::npos) {
    return std::nullopt;
  }
  return std::array<std::string_view, 3>{Trim(line.substr(0, first)),
                                         Trim(line.substr(first + 1, second - first - 1)),
                                         Trim(line.substr(second + 1))};
}

std::optional<XidClass> ParseClass(std::string_view text) {
  if (text == "fatal") return XidClass::kFatal;
  if (text == "contained") return XidClass::kContained;
  if (text == "link") return XidClass::kLink;
  if (text == "recovery") return XidClass::kRecovery;
  if (text == "application") return XidClass::kApplication;
  if (text == "note") return XidClass::kNote;
  return std::nullopt;
}

}  // namespace

std::map<std::uint64_t, AmdModel> ParseAmdModels(std::string_view csv) {
  std::map<std::uint64_t, AmdModel> models;
  for (const std::string_view line : Lines(csv)) {
    const auto fields = Fields(line);
    if (!fields || !(*fields)[0].starts_with("0x")) continue;
    const auto id = ParseUnsigned((*fields)[0].substr(2), 16);
    const std::string_view last = (*fields)[2];
    const auto comma = last.find(',');
    if (!id || comma == std::string_view::npos) continue;
    const auto dies = ParseUnsigned(Trim(last.substr(comma + 1)));
    if (!dies || *dies == 0 || *dies > 64) continue;
    models[*id] = {std::string((*fields)[1]), std::string(Trim(last.substr(0, comma))),
                   static_cast<int>(*dies)};
  }
  return models;
}

std::map<int, XidMeaning> ParseXids(std::string_view csv) {
  std::map<int, XidMeaning> xids;
  for (const std::string_view line : Lines(csv)) {
    const auto fields = Fields(line);
    if (!fields) continue;
    const auto number = ParseUnsigned((*fields)[0]);
    const auto kind = ParseClass((*fields)[1]);
    if (!number || *number > 100'000 || !kind) continue;
    xids[static_cast<int>(*number)] = {*kind, std::string((*fields)[2])};
  }
  return xids;
}

std::optional<AmdModel> FindAmdModel(std::uint64_t pci_device) {
  static const auto kModels = ParseAmdModels(AmdDevicesCsv());
  const auto found = kModels.find(pci_device);
  if (found == kModels.end()) return std::nullopt;
  return found->second;
}

XidMeaning FindXid(int number) {
  static const auto kXids = ParseXids(NvidiaXidsCsv());
  const auto found = kXids.find(number);
  if (found != kXids.end()) return found->second;
  return {XidClass::kContained, "look the number up in the vendor's catalog"};
}

}  // namespace bimetal::agent
