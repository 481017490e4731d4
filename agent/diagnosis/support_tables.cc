#include "agent/diagnosis/support_tables.h"

#include <vector>

#include "agent/diagnosis/csv.h"
#include "agent/diagnosis/engine.h"

namespace bimetal::agent {
namespace {

constexpr std::string_view kOldestJudged = "6.0";

std::vector<std::vector<std::string>> ReadTable(std::string_view csv, std::size_t columns) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string_view line : CsvLines(csv)) {
    auto fields = SplitCsv(line);
    if (fields.size() == columns) rows.push_back(std::move(fields));
  }
  return rows;
}

const std::vector<std::vector<std::string>>& GfxRows() {
  static const auto kRows = ReadTable(GfxSupportCsv(), 5);
  return kRows;
}

// "6.4.1" as 6.4: a row's last release holds for all of its patches.
std::string_view MajorMinor(std::string_view version) {
  const auto dot = version.find('.');
  if (dot == std::string_view::npos) return version;
  return version.substr(0, version.find('.', dot + 1));
}

}  // namespace

std::string GfxSupport(std::string_view gfx, std::string_view version) {
  if (gfx.empty() || (!version.empty() && CompareVersions(version, kOldestJudged) < 0)) return {};
  const std::string_view release = MajorMinor(version);
  for (const auto& row : GfxRows()) {
    if (row[0] != gfx || row[4] == "never") continue;
    if (version.empty()) return "supported";
    const bool begun = CompareVersions(release, row[2]) >= 0;
    const bool ended = !row[3].empty() && CompareVersions(release, row[3]) > 0;
    if (begun && !ended) return row[4];
  }
  return "unsupported";
}

bool IsIntegratedGfx(std::string_view gfx) {
  for (const auto& row : GfxRows()) {
    if (row[0] == gfx && row[1] == "apu") return true;
  }
  return false;
}

std::string NewestRuntime(std::string_view vendor, std::string_view driver) {
  static const auto kRows = ReadTable(DriverRuntimeCsv(), 3);
  std::string newest;
  for (const auto& row : kRows) {
    if (row[0] == vendor && CompareVersions(driver, row[1]) >= 0) newest = row[2];
  }
  return newest == "last" ? std::string() : newest;
}

}  // namespace bimetal::agent
