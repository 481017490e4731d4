#include "kernels/run/run.h"

#include <memory>
#include <thread>
#include <utility>

#include "kernels/run/board.h"
#include "kernels/run/select.h"

namespace bimetal::kernels {
namespace {

using Clock = std::chrono::steady_clock;

// Deeper levels run every check more often, each time with another seed.
constexpr std::uint32_t kRoundsAtDeeperLevels = 4;

CheckRequest MakeRequest(const RunOptions& options, Deadline deadline) {
  CheckRequest request;
  request.seed = options.seed;
  request.memory_bytes = options.memory_bytes;
  request.rounds = options.level > 1 ? kRoundsAtDeeperLevels : 1;
  request.deadline = deadline;
  return request;
}

void RunDevice(const RunOptions& options, Backend& backend, const DeviceInfo& info,
               Deadline deadline, Board& board) {
  const auto opened_at = Clock::now();
  auto opened = backend.Open(info.id);
  for (const Check* check : options.checks) {
    const auto start = opened.ok() ? Clock::now() : opened_at;
    CheckResult result;
    if (!opened.ok()) {
      result = FromError(opened.error());
    } else if (start >= deadline) {
      result.evidence = "not run: the time of the run was used up";
    } else {
      result = check->run(*opened.value(), MakeRequest(options, deadline));
    }
    board.Post(info.id, *check, result,
               std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start));
  }
}

// The whole run, on a thread that the caller may abandon: it owns or shares all that it uses.
void Conduct(const RunOptions options, Deadline deadline, std::shared_ptr<Board> board) {
  Outcome<Selection> selected = SelectDevices(options);
  if (!selected.ok()) {
    board->Forgo(selected.error().message);
    board->Finish();
    return;
  }
  Selection& selection = selected.value();
  std::vector<std::string> ids = selection.absent;
  for (const DeviceInfo& info : selection.present) ids.push_back(info.id);
  board->Announce(BackendName(selection.backend->kind()), selection.vendor, ids);
  for (const std::string& id : selection.absent) {
    CheckResult result;
    result.evidence = "no device answers to id " + id;
    for (const Check* check : options.checks) {
      board->Post(id, *check, result, std::chrono::milliseconds(0));
    }
  }
  {
    std::vector<std::jthread> devices;
    for (const DeviceInfo& info : selection.present) {
      devices.emplace_back([&options, &selection, &info, deadline, &board] {
        RunDevice(options, *selection.backend, info, deadline, *board);
      });
    }
  }
  board->Finish();
}

}  // namespace

RunSummary RunValidation(const RunOptions& options,
                         const std::function<void(const std::string&)>& on_line) {
  const Deadline deadline = Clock::now() + options.timeout;
  const auto board = std::make_shared<Board>(options, on_line);
  std::thread conductor(Conduct, options, deadline, board);
  const bool finished = board->WaitUntilFinished(deadline + options.grace);
  if (finished) {
    conductor.join();
  } else {
    conductor.detach();
  }
  // On a finished run nothing is owed, unless a thread ended early: never leave a gap.
  board->Forgo(finished ? "the check ended without a verdict"
                        : "no answer from the device or its driver in time");
  RunSummary summary = board->Close();
  summary.abandoned = !finished;
  return summary;
}

std::string_view ProgramVersion() { return BIMETAL_VERSION; }

}  // namespace bimetal::kernels
