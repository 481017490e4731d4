#include "kernels/program/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "kernels/program/flags.h"
#include "kernels/run/board.h"

namespace bimetal::kernels {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The worker ends by itself at timeout + grace; beyond that it hangs as a whole.
constexpr milliseconds kPatience{2'000};
// A process that SIGKILL does not end hangs inside the kernel's driver.
constexpr milliseconds kKillWait{2'000};
constexpr milliseconds kReapStep{5};
constexpr std::size_t kMaxLine = 64UL << 10;

struct Worker {
  pid_t pid = -1;
  int output = -1;
  std::string error;  // why there is none
};

Worker Start(const RunOptions& options, const std::vector<std::string>& arguments) {
  Worker worker;
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    worker.error = std::string("pipe: ") + std::strerror(errno);
    return worker;
  }
  std::vector<std::string> words = {"bimetal-validate", kWorkerFlag};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back("--run-id=" + options.run_id);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  const int failed =
      posix_spawn(&worker.pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (failed != 0) {
    worker.pid = -1;
    worker.error = std::string("starting the worker: ") + std::strerror(failed);
    close(pipe_ends[0]);
    return worker;
  }
  worker.output = pipe_ends[0];
  return worker;
}

// Relays lines until the worker closes its output. False where the deadline passed first, or where
// it said all that it had to say and does not leave: it hangs in a library's own end.
bool RelayAll(int output, Deadline deadline, Board& board) {
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd waited{output, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    const ssize_t got = read(output, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      const std::string line = text.substr(0, end);
      if (Board::IsDone(line)) deadline = std::min(deadline, Clock::now() + kPatience);
      board.Relay(line);
      text.erase(0, end + 1);
    }
    if (text.size() > kMaxLine) return false;
  }
}

// How the worker ended; empty: it did not within `wait`.
std::string Reap(pid_t pid, milliseconds wait) {
  const Deadline deadline = Clock::now() + wait;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid && WIFSIGNALED(status)) {
      return std::string("was ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
             strsignal(WTERMSIG(status)) + ")";
    }
    if (ended == pid) return "ended with status " + std::to_string(WEXITSTATUS(status));
    if (ended < 0 && errno != EINTR) return "is gone";
    if (Clock::now() >= deadline) return "";
    std::this_thread::sleep_for(kReapStep);
  }
}

}  // namespace

RunSummary Supervise(const RunOptions& options, const std::vector<std::string>& arguments,
                     const std::function<void(const std::string&)>& on_line) {
  Board board(options, on_line);
  const Worker worker = Start(options, arguments);
  if (worker.pid < 0) {
    board.Forgo(worker.error);
    return board.Close();
  }
  const Deadline deadline = Clock::now() + options.timeout + options.grace + kPatience;
  const bool closed = RelayAll(worker.output, deadline, board);
  close(worker.output);
  std::string how = closed ? Reap(worker.pid, kPatience) : "";
  if (how.empty()) {
    kill(worker.pid, SIGKILL);
    how = Reap(worker.pid, kKillWait).empty()
              ? "gave no answer in time and cannot be killed: it hangs inside the kernel's driver"
              : "gave no answer in time and was killed";
  }
  board.Forgo([&](const std::string&, const std::string& step) {
    return "the validation process " + how +
           (step.empty() ? std::string() : "; the device was in check " + step);
  });
  return board.Close();
}

// A supervisor that ended before this took effect leaves a worker that ends at its own deadline.
void DieWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace bimetal::kernels
