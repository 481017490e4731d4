#include "kernels/run/board.h"

#include "kernels/json/json.h"

namespace bimetal::kernels {
namespace {

std::string LevelName(int level) { return "L" + std::to_string(level); }

}  // namespace

Board::Board(const RunOptions& options, std::function<void(const std::string&)> on_line)
    : options_(options), on_line_(std::move(on_line)) {}

void Board::Say(const std::string& line) {
  summary_.lines.push_back(line);
  on_line_(line);
}

void Board::Announce(std::string_view backend, std::string_view vendor,
                     std::vector<std::string> ids) {
  const std::lock_guard lock(mutex_);
  if (!closed_ && !announced_) AnnounceLocked(backend, vendor, std::move(ids));
}

void Board::AnnounceLocked(std::string_view backend, std::string_view vendor,
                           std::vector<std::string> ids) {
  announced_ = true;
  backend_ = backend;
  Say(JsonLine()
          .Add("type", "run")
          .Add("run", options_.run_id)
          .Add("vendor", vendor)
          .Add("backend", backend)
          .Add("simulated", backend == BackendName(BackendKind::kHost))
          .Add("level", LevelName(options_.level))
          .Add("fingerprint", options_.fingerprint)
          .Add("devices", std::uint64_t{ids.size()})
          .Add("program", ProgramVersion())
          .Text());
  if (ids.empty()) ids.push_back("");
  for (const std::string& id : ids) {
    for (const Check* check : options_.checks) owed_.emplace(id, check->key);
  }
}

void Board::Post(const std::string& device, const Check& check, const CheckResult& result,
                 std::chrono::milliseconds duration) {
  const std::lock_guard lock(mutex_);
  if (!closed_) PostLocked(device, check, result, duration);
}

void Board::PostLocked(const std::string& device, const Check& check, const CheckResult& result,
                       std::chrono::milliseconds duration) {
  if (owed_.erase({device, std::string(check.key)}) == 0) return;
  switch (result.verdict) {
    case VerdictKind::kFail:
      ++summary_.failed;
      break;
    case VerdictKind::kInconclusive:
      ++summary_.inconclusive;
      break;
    default:
      ++summary_.passed;
  }
  Say(JsonLine()
          .Add("type", "verdict")
          .Add("run", options_.run_id)
          .Add("check", check.key)
          .Add("device", device)
          .Add("level", LevelName(options_.level))
          .Add("verdict", VerdictName(result.verdict))
          .Add("value", result.value)
          .Add("unit", result.unit)
          .Add("floor", result.floor)
          .Add("floorSource", result.floor_source)
          .Add("seed", options_.seed)
          .Add("durationMs", static_cast<std::uint64_t>(duration.count()))
          .Add("evidence", result.evidence)
          .Add("backend", backend_)
          .Text());
}

void Board::Forgo(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (!announced_) AnnounceLocked("none", options_.vendor, options_.devices);
  CheckResult result;
  result.evidence = reason;
  const auto owed = owed_;
  for (const auto& [device, key] : owed) {
    PostLocked(device, *FindCheck(key), result, std::chrono::milliseconds(0));
  }
}

void Board::Finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool Board::WaitUntilFinished(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return finished_; });
}

RunSummary Board::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (summary_.failed > 0) {
    summary_.verdict = VerdictKind::kFail;
  } else if (summary_.inconclusive == 0 && summary_.passed > 0) {
    summary_.verdict = VerdictKind::kPass;
  }
  Say(JsonLine()
          .Add("type", "done")
          .Add("run", options_.run_id)
          .Add("verdict", VerdictName(summary_.verdict))
          .Add("passed", summary_.passed)
          .Add("failed", summary_.failed)
          .Add("inconclusive", summary_.inconclusive)
          .Text());
  return summary_;
}

}  // namespace bimetal::kernels
