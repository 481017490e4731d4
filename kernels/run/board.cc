#include "kernels/run/board.h"

#include "kernels/json/json.h"

namespace bimetal::kernels {
namespace {

std::string LevelName(int level) { return "L" + std::to_string(level); }

JsonLine DistributionJson(const Distribution& spread) {
  JsonLine line;
  line.Add("samples", std::uint64_t{spread.samples})
      .Add("min", spread.min)
      .Add("p5", spread.p5)
      .Add("median", spread.median)
      .Add("max", spread.max);
  if (spread.clock_mhz > 0) line.Add("clockMhz", spread.clock_mhz);
  if (spread.power_watts > 0) line.Add("powerWatts", spread.power_watts);
  return line;
}

}  // namespace

Board::Board(const RunOptions& options, std::function<void(const std::string&)> on_line)
    : options_(options), on_line_(std::move(on_line)) {}

void Board::Say(const std::string& line) {
  summary_.lines.push_back(line);
  on_line_(line);
}

void Board::Tell(const JsonLine& event) {
  if (options_.on_event) options_.on_event(event.Text());
}

void Board::Announce(std::string_view backend, std::string_view vendor, std::size_t devices,
                     const Owed& owed) {
  const std::lock_guard lock(mutex_);
  if (!closed_ && !announced_) AnnounceLocked(backend, vendor, devices, owed);
}

void Board::AnnounceLocked(std::string_view backend, std::string_view vendor, std::size_t devices,
                           const Owed& owed) {
  announced_ = true;
  backend_ = backend;
  Tell(JsonLine().Add("event", "announced").Add("backend", backend));
  Say(JsonLine()
          .Add("type", "run")
          .Add("run", options_.run_id)
          .Add("vendor", vendor)
          .Add("backend", backend)
          .Add("simulated", backend == BackendName(BackendKind::kHost))
          .Add("level", LevelName(options_.level))
          .Add("fingerprint", options_.fingerprint)
          .Add("devices", std::uint64_t{devices})
          .Add("program", ProgramVersion())
          .Text());
  for (const auto& [device, check] : owed) {
    owed_.emplace(device, check->key);
    Tell(JsonLine().Add("event", "owed").Add("device", device).Add("check", check->key));
  }
}

void Board::Begin(const std::string& device, const Check& check) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  steps_[device] = check.key;
  Tell(JsonLine().Add("event", "begin").Add("device", device).Add("check", check.key));
}

void Board::Post(const std::string& device, const Check& check, const CheckResult& result,
                 std::chrono::milliseconds duration) {
  const std::lock_guard lock(mutex_);
  if (!closed_) PostLocked(device, check, result, duration);
}

void Board::Count(std::string_view verdict) {
  if (verdict == VerdictName(VerdictKind::kFail)) {
    ++summary_.failed;
  } else if (verdict == VerdictName(VerdictKind::kInconclusive)) {
    ++summary_.inconclusive;
  } else {
    ++summary_.passed;
  }
}

void Board::PostLocked(const std::string& device, const Check& check, const CheckResult& result,
                       std::chrono::milliseconds duration) {
  if (owed_.erase({device, std::string(check.key)}) == 0) return;
  const std::string_view verdict = VerdictName(result.verdict);
  Count(verdict);
  Tell(JsonLine()
           .Add("event", "given")
           .Add("device", device)
           .Add("check", check.key)
           .Add("verdict", verdict));
  JsonLine line;
  line.Add("type", "verdict")
      .Add("run", options_.run_id)
      .Add("check", check.key)
      .Add("device", device)
      .Add("level", LevelName(options_.level))
      .Add("verdict", verdict)
      .Add("value", result.value)
      .Add("unit", result.unit)
      .Add("floor", result.floor)
      .Add("floorSource", result.floor_source)
      .Add("seed", options_.seed)
      .Add("durationMs", static_cast<std::uint64_t>(duration.count()))
      .Add("evidence", result.evidence)
      .Add("backend", backend_);
  if (result.distribution) line.Add("distribution", DistributionJson(*result.distribution));
  if (!result.capability.empty() && result.verdict == VerdictKind::kPass) {
    line.Add("capability", result.capability);
  }
  Say(line.Text());
}

void Board::ForgoLocked(const std::optional<std::string>& device, const Reason& reason) {
  const auto owed = owed_;
  for (const auto& [id, key] : owed) {
    if (device && *device != id) continue;
    const auto step = steps_.find(id);
    CheckResult result;
    result.evidence = reason(id, step == steps_.end() ? "" : step->second);
    PostLocked(id, *FindCheck(key), result, std::chrono::milliseconds(0));
  }
}

void Board::Forgo(const Reason& reason) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (!announced_) {
    Owed owed;
    std::vector<std::string> ids = options_.devices;
    if (ids.empty()) ids.emplace_back();
    for (const std::string& id : ids) {
      for (const Check* check : options_.checks) owed.emplace_back(id, check);
    }
    AnnounceLocked("none", options_.vendor, options_.devices.size(), owed);
  }
  ForgoLocked(std::nullopt, reason);
}

void Board::Forgo(const std::string& reason) {
  Forgo([&](const std::string&, const std::string&) { return reason; });
}

void Board::ForgoDevice(const std::string& device, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!closed_) ForgoLocked(device, [&](const std::string&, const std::string&) { return reason; });
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
