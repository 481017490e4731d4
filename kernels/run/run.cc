#include "kernels/run/run.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "kernels/device/trace.h"
#include "kernels/run/board.h"
#include "kernels/run/select.h"

namespace bimetal::kernels {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Deeper levels run every check more often, each time with another seed.
constexpr std::uint32_t kRoundsAtDeeperLevels = 4;
// Of the run's time, where checks of the whole node follow those of each device.
constexpr int kDeviceShare = 7;
constexpr int kWhole = 10;
// A device call that has not returned this long after its deadline hangs.
constexpr milliseconds kHangGrace{500};

constexpr const char* kNoAnswer = "no answer from the device or its driver in time";

CheckRequest MakeRequest(const RunOptions& options, Deadline deadline,
                         std::optional<std::uint64_t> errors_at_start = std::nullopt) {
  CheckRequest request;
  request.seed = options.seed;
  request.memory_bytes = options.memory_bytes;
  request.rounds = options.level > 1 ? kRoundsAtDeeperLevels : 1;
  request.stress = options.stress;
  request.errors_at_start = errors_at_start;
  request.deadline = deadline;
  return request;
}

std::string Hangs(const CallTrace& trace) {
  const std::string text = trace.Text();
  return kNoAnswer + (text.empty() ? std::string() : ": " + text + " has not returned");
}

milliseconds Since(Clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

// One device of the run and the thread that works on it.
struct Slot {
  DeviceInfo info;
  std::unique_ptr<Device> device;
  DeviceError error;
  CallTrace trace;
  bool done = false;
  bool failed = false;  // a check of its own; read once it is done
};

// All that the run's threads use, shared, so that a thread that hangs in a vendor's call keeps what
// it needs however long it stays.
struct Session {
  RunOptions options;
  Clock::time_point start = Clock::now();
  Deadline deadline;
  std::shared_ptr<Board> board;
  Selection selection;
  std::vector<std::unique_ptr<Slot>> slots;
  CallTrace trace;  // of the conductor
  std::mutex mutex;
  std::condition_variable changed;
  bool hung = false;  // a thread was left behind
};

void RunDevice(Session& session, Slot& slot, Deadline deadline) {
  call_trace = &slot.trace;
  slot.trace.Begin("opening the device");
  const auto opened_at = Clock::now();
  auto opened = session.selection.backend->Open(slot.info.id);
  if (opened.ok()) slot.device = std::move(opened.value());
  if (!opened.ok()) slot.error = opened.error();
  std::optional<std::uint64_t> errors_at_start;
  if (slot.device != nullptr) errors_at_start = slot.device->Sample().uncorrected_errors;
  for (const Check* check : session.options.checks) {
    if (check->run == nullptr || !Applies(*check, slot.info, session.selection.present.size())) {
      continue;
    }
    const auto start = slot.device != nullptr ? Clock::now() : opened_at;
    CheckResult result;
    if (slot.device == nullptr) {
      result = FromError(slot.error);
    } else if (start >= deadline) {
      result.evidence = "not run: the time of the run was used up";
    } else {
      slot.trace.Begin(check->key.data());
      session.board->Begin(slot.info.id, *check);
      result = check->run(*slot.device, MakeRequest(session.options, deadline, errors_at_start));
    }
    slot.failed = slot.failed || result.verdict == VerdictKind::kFail;
    session.board->Post(slot.info.id, *check, result, Since(start));
  }
  call_trace = nullptr;
}

// Runs every device on a thread of its own; leaves those behind that hang.
void RunDevices(const std::shared_ptr<Session>& session, Deadline deadline) {
  std::vector<std::thread> threads;
  for (auto& slot : session->slots) {
    threads.emplace_back([session, slot = slot.get(), deadline] {
      RunDevice(*session, *slot, deadline);
      const std::lock_guard lock(session->mutex);
      slot->done = true;
      session->changed.notify_all();
    });
  }
  std::unique_lock lock(session->mutex);
  const auto grace = std::min(kHangGrace, session->options.grace / 2);
  session->changed.wait_until(lock, deadline + grace, [&] {
    return std::all_of(session->slots.begin(), session->slots.end(),
                       [](const auto& slot) { return slot->done; });
  });
  std::vector<bool> done;
  for (const auto& slot : session->slots) done.push_back(slot->done);
  session->hung = std::find(done.begin(), done.end(), false) != done.end();
  lock.unlock();
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (done[i]) {
      threads[i].join();
    } else {
      threads[i].detach();
      session->board->ForgoDevice(session->slots[i]->info.id, Hangs(session->slots[i]->trace));
    }
  }
}

// Devices that answer; a wedged or lost one says so here.
std::vector<NodeDevice> NodeDevices(Session& session, const std::vector<bool>& done) {
  std::vector<NodeDevice> devices;
  for (std::size_t i = 0; i < session.slots.size(); ++i) {
    Slot& slot = *session.slots[i];
    NodeDevice device{slot.info, nullptr, slot.error};
    if (!done[i]) {
      device.error = {DeviceErrorCode::kTimeout, Hangs(slot.trace)};
    } else if (slot.device != nullptr) {
      device.failed = slot.failed;
      const auto answers = slot.device->QueryMemory();
      if (answers.ok()) device.device = slot.device.get();
      if (!answers.ok()) device.error = answers.error();
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

void RunNode(Session& session) {
  std::vector<bool> done;
  {
    const std::lock_guard lock(session.mutex);
    for (const auto& slot : session.slots) done.push_back(slot->done);
  }
  const std::size_t count = session.slots.size();
  for (const Check* check : session.options.checks) {
    if (check->run_node == nullptr) continue;
    if (count == 0 || !Applies(*check, session.slots[0]->info, count)) continue;
    const auto start = Clock::now();
    session.trace.Begin(check->key.data());
    // A device whose thread was left behind may be in use: it is not even asked.
    const std::vector<NodeDevice> devices = NodeDevices(session, done);
    for (const NodeDevice& device : devices) session.board->Begin(device.info.id, *check);
    std::vector<CheckResult> results;
    if (start >= session.deadline) {
      results.resize(count);
      for (CheckResult& result : results) {
        result.evidence = "not run: the time of the run was used up";
      }
    } else {
      results = check->run_node(devices, MakeRequest(session.options, session.deadline));
    }
    for (std::size_t i = 0; i < count; ++i) {
      session.board->Post(devices[i].info.id, *check, results[i], Since(start));
    }
  }
}

// Absent devices, and a node of another number of devices than asked for.
void JudgeSelection(const Session& session) {
  const std::size_t found = session.selection.present.size();
  for (const Check* check : session.options.checks) {
    const bool inventory = check->key == "inventory";
    for (const std::string& id : session.selection.absent) {
      CheckResult result;
      // The library answered, and the device that it should show is not there.
      if (inventory) result.verdict = VerdictKind::kFail;
      result.evidence = "no device answers to id " + id;
      session.board->Post(id, *check, result, milliseconds(0));
    }
    const auto& expected = session.options.expect_devices;
    if (inventory && expected && *expected != found) {
      CheckResult result;
      result.verdict = VerdictKind::kFail;
      result.value = std::to_string(found);
      result.unit = "devices";
      result.evidence = "expected " + std::to_string(*expected) + " devices, found " + result.value;
      session.board->Post("", *check, result, milliseconds(0));
    }
  }
}

Board::Owed OwedBy(const Session& session) {
  Board::Owed owed;
  const std::size_t found = session.selection.present.size();
  const auto& expected = session.options.expect_devices;
  for (const Check* check : session.options.checks) {
    for (const std::string& id : session.selection.absent) owed.emplace_back(id, check);
    for (const DeviceInfo& info : session.selection.present) {
      if (Applies(*check, info, found)) owed.emplace_back(info.id, check);
    }
    if (check->key == "inventory" && expected && *expected != found) owed.emplace_back("", check);
  }
  return owed;
}

// The whole run, on a thread that the caller may abandon.
void Conduct(const std::shared_ptr<Session>& session) {
  call_trace = &session->trace;
  session->trace.Begin("finding devices");
  Outcome<Selection> selected = SelectDevices(session->options);
  if (!selected.ok()) {
    session->board->Forgo(selected.error().message);
    session->board->Finish();
    return;
  }
  session->selection = std::move(selected.value());
  const Selection& selection = session->selection;
  session->board->Announce(BackendName(selection.backend->kind()), selection.vendor,
                           selection.present.size() + selection.absent.size(), OwedBy(*session));
  JudgeSelection(*session);
  for (const DeviceInfo& info : selection.present) {
    session->slots.push_back(std::make_unique<Slot>());
    session->slots.back()->info = info;
  }
  const bool node_follows = std::any_of(
      session->options.checks.begin(), session->options.checks.end(), [&](const Check* check) {
        return check->run_node != nullptr && selection.present.size() > 1;
      });
  const auto whole = session->deadline - session->start;
  RunDevices(session,
             node_follows ? session->start + whole / kWhole * kDeviceShare : session->deadline);
  RunNode(*session);
  session->board->Finish();
}

}  // namespace

RunSummary RunValidation(const RunOptions& options,
                         const std::function<void(const std::string&)>& on_line) {
  const auto session = std::make_shared<Session>();
  session->options = options;
  session->deadline = session->start + options.timeout;
  session->board = std::make_shared<Board>(options, on_line);
  std::thread conductor([session] { Conduct(session); });
  const bool finished = session->board->WaitUntilFinished(session->deadline + options.grace);
  if (finished) {
    conductor.join();
  } else {
    conductor.detach();
  }
  // On a finished run nothing is owed, unless a thread ended early: never leave a gap.
  session->board->Forgo(finished ? "the check ended without a verdict" : Hangs(session->trace));
  RunSummary summary = session->board->Close();
  summary.abandoned = !finished || session->hung;
  return summary;
}

std::string_view ProgramVersion() { return BIMETAL_VERSION; }

}  // namespace bimetal::kernels
