#include "agent/devices/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "agent/devices/report_text.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxOutput = 8 * 1024 * 1024;
constexpr int kReportFd = 3;
constexpr int kReapMs = 500;
constexpr int kMaxAttempts = 8;
constexpr std::size_t kMaxBadSteps = 3;

std::string ErrnoText(int code) { return std::generic_category().message(code); }

// Starts argv with `report` as descriptor 3; pid, or -errno.
pid_t Spawn(const std::vector<std::string>& argv, int report) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, report, kReportFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kReportFd + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int code = posix_spawn(&pid, args[0], &actions, &attributes, args.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code == 0 ? pid : -code;
}

// Waits up to `ms` for the child's end without taking its status from anybody else. A child that
// sits in an uninterruptible call of a driver does not end; its zombie is init's when we end.
bool Reap(pid_t pid, int ms, int& status) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) {
    pollfd ended{fd, POLLIN, 0};
    while (poll(&ended, 1, ms) < 0 && errno == EINTR) {
    }
    close(fd);
    return waitpid(pid, &status, WNOHANG) == pid;
  }
  for (int waited = 0; waited <= ms; waited += 5) {
    if (waitpid(pid, &status, WNOHANG) == pid) return true;
    poll(nullptr, 0, 5);
  }
  return false;
}

// Collects output until the end of file or a limit; the limit that was hit, kExited for none.
ProbeOutcome::End Collect(int fd, Millis silence, Millis total, std::string& output) {
  const SystemClock clock;
  const Millis deadline = clock.Monotonic() + total;
  std::array<char, 16384> buffer;
  while (true) {
    const Millis left = std::min(silence, deadline - clock.Monotonic());
    pollfd readable{fd, POLLIN, 0};
    const int ready = left.v <= 0 ? 0 : poll(&readable, 1, static_cast<int>(left.v));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return ProbeOutcome::End::kTimedOut;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ProbeOutcome::End::kExited;
    output.append(buffer.data(), static_cast<std::size_t>(n));
    if (output.size() > kMaxOutput) return ProbeOutcome::End::kTooMuch;
  }
}

void FillEnd(ProbeOutcome& outcome, pid_t pid, bool reaped, int status) {
  if (!reaped) {
    outcome.stuck_child = pid;
    outcome.end = ProbeOutcome::End::kTimedOut;
    outcome.why = "the process sits in a driver call and cannot be ended";
  } else if (outcome.end == ProbeOutcome::End::kTimedOut) {
    outcome.why = "no answer in time";
  } else if (outcome.end == ProbeOutcome::End::kTooMuch) {
    outcome.why = "wrote more than " + std::to_string(kMaxOutput) + " bytes";
  } else if (WIFSIGNALED(status)) {
    outcome.end = ProbeOutcome::End::kSignalled;
    outcome.signal = WTERMSIG(status);
    outcome.why = "ended by signal " + std::to_string(outcome.signal);
  } else {
    outcome.exit_code = WEXITSTATUS(status);
    outcome.why = "exit code " + std::to_string(outcome.exit_code);
  }
}

Finding LibraryFinding(Vendor vendor, const ProbeOutcome& outcome, const std::string& step) {
  const bool hung = outcome.end == ProbeOutcome::End::kTimedOut;
  Finding finding;
  finding.code = hung ? "VendorLibraryHung" : "VendorLibraryCrashed";
  finding.severity = Severity::kError;
  finding.evidence =
      std::string(VendorName(vendor)) + " reader in step '" + step + "': " + outcome.why;
  finding.remedy = hung ? "reset the GPU; if the step hangs again, reboot the node"
                        : "check that driver and library are of one version, then reboot the node";
  return finding;
}

Finding FailedFinding(Vendor vendor, const ProbeOutcome& outcome) {
  return {"ProbeFailed",
          Severity::kError,
          "",
          std::string(VendorName(vendor)) + " probe gave no complete report: " + outcome.why,
          "check the agent's image and limits, then restart the agent",
          ""};
}

// True: the child that an earlier probe left in a driver call is still there.
bool StillStuck(Vendor vendor, ProbeMemory& memory) {
  const auto stuck = memory.stuck_child.find(vendor);
  if (stuck == memory.stuck_child.end()) return false;
  int status = 0;
  if (waitpid(stuck->second, &status, WNOHANG) == 0) return true;
  memory.stuck_child.erase(stuck);
  return false;
}

std::vector<std::string> ProbeArgv(Vendor vendor, const std::string& root,
                                   const ProbeOptions& options,
                                   const std::set<std::string>& skipped) {
  std::vector<std::string> argv = options.command;
  if (argv.empty()) argv = {"/proc/self/exe"};
  for (const std::string& arg :
       {std::string("--probe"), std::string(VendorName(vendor)), std::string("--root"), root}) {
    argv.push_back(arg);
  }
  if (!options.nvml_path.empty()) argv.insert(argv.end(), {"--library", options.nvml_path});
  if (options.system_library) argv.push_back("--system-library");
  for (const std::string& step : skipped) argv.insert(argv.end(), {"--skip", step});
  return argv;
}

}  // namespace

ProbeOutcome RunProbe(const std::vector<std::string>& argv, Millis silence, Millis total) {
  ProbeOutcome outcome;
  std::array<int, 2> pipe_fds{-1, -1};
  // Both ends above the child's own descriptors, or dup2 onto 3 could be a no-op that keeps
  // close-on-exec set.
  if (argv.empty() || pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    outcome.why = argv.empty() ? "no program to start" : "pipe: " + ErrnoText(errno);
    return outcome;
  }
  const int write_end = fcntl(pipe_fds[1], F_DUPFD_CLOEXEC, kReportFd + 1);
  close(pipe_fds[1]);
  const pid_t pid = write_end < 0 ? -errno : Spawn(argv, write_end);
  if (write_end >= 0) close(write_end);
  if (pid < 0) {
    close(pipe_fds[0]);
    outcome.why = "starting " + argv[0] + ": " + ErrnoText(-pid);
    return outcome;
  }
  outcome.end = Collect(pipe_fds[0], silence, total, outcome.output);
  close(pipe_fds[0]);
  int status = 0;
  // A child that has closed its report but stays is no better than one that never writes.
  bool reaped = outcome.end == ProbeOutcome::End::kExited && Reap(pid, kReapMs, status);
  if (!reaped) {
    if (outcome.end == ProbeOutcome::End::kExited) outcome.end = ProbeOutcome::End::kTimedOut;
    kill(pid, SIGKILL);
    reaped = Reap(pid, kReapMs, status);
  }
  FillEnd(outcome, pid, reaped, status);
  return outcome;
}

SourceReport ReadInProbe(Vendor vendor, const std::string& root, const ProbeOptions& options,
                         ProbeMemory& memory) {
  const SystemClock clock;
  const Millis start = clock.Monotonic();
  auto& bad = memory.bad_steps[vendor];
  std::erase_if(bad, [&](const auto& entry) { return entry.second.retry_at <= start; });
  std::set<std::string> skipped;
  for (const auto& [step, unused] : bad) skipped.insert(step);
  if (StillStuck(vendor, memory)) skipped.insert(kVendorStep);

  SourceReport report;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const Millis left = start + options.total - clock.Monotonic();
    if (left.v <= 0) break;
    const ProbeOutcome outcome =
        RunProbe(ProbeArgv(vendor, root, options, skipped), options.silence, left);
    ParsedReport parsed = ParseReportText(outcome.output);
    report = std::move(parsed.report);
    if (outcome.stuck_child != 0) memory.stuck_child[vendor] = outcome.stuck_child;
    if (parsed.complete && outcome.end == ProbeOutcome::End::kExited) break;
    if (outcome.end == ProbeOutcome::End::kExited ||
        outcome.end == ProbeOutcome::End::kNotStarted || parsed.last_step.empty()) {
      report.findings.push_back(FailedFinding(vendor, outcome));
      break;
    }
    bad[parsed.last_step] = {LibraryFinding(vendor, outcome, parsed.last_step),
                             clock.Monotonic() + options.retry};
    skipped.insert(parsed.last_step);
    if (bad.size() >= kMaxBadSteps || outcome.stuck_child != 0) skipped.insert(kVendorStep);
  }
  for (const auto& [step, entry] : bad) report.findings.push_back(entry.finding);
  return report;
}

}  // namespace bimetal::agent
