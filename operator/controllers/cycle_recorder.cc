#include "operator/controllers/cycle_recorder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/log.h"
#include "core/queue/replay.h"

namespace bimetal::op {
namespace {

constexpr std::string_view kPrefix = "cycle-", kSuffix = ".json";

// Of the names that Record gives; nullopt of any other.
std::optional<std::uint64_t> NumberOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(name.size(), kSuffix.size()));
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

CycleRecorder::Files CycleRecorder::FilesThere() const {
  Files out;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder)) {
    if (const auto number = NumberOf(entry.path().filename().string())) {
      out[*number] = entry.path();
    }
  }
  return out;
}

void CycleRecorder::Write(const std::string& text) {
  Files files = FilesThere();
  const std::uint64_t number = files.empty() ? 1 : files.rbegin()->first + 1;
  // Room first: the folder never holds more than it may.
  while (!files.empty() && files.size() + 1 > static_cast<std::size_t>(options_.keep)) {
    std::filesystem::remove(files.begin()->second);
    files.erase(files.begin());
  }
  const auto path = std::filesystem::path(options_.folder) /
                    (std::string(kPrefix) + std::to_string(number) + std::string(kSuffix));
  const std::filesystem::path unfinished = path.string() + ".part";
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) {
      throw std::filesystem::filesystem_error(
          "cannot write", unfinished,
          std::error_code(errno != 0 ? errno : EIO, std::generic_category()));
    }
  }
  std::filesystem::rename(unfinished, path);
}

void CycleRecorder::Record(const core::queue::Snapshot& snapshot, const core::queue::Plan& plan) {
  if (options_.folder.empty()) return;
  try {
    Write(core::queue::WriteCycle(snapshot, plan));
    failed_ = false;
  } catch (const std::exception& problem) {
    if (!std::exchange(failed_, true)) {
      Log(LogLevel::kWarning, "cycle could not be recorded",
          {{"folder", options_.folder}, {"error", problem.what()}});
    }
  }
}

}  // namespace bimetal::op
