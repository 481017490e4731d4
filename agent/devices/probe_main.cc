#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <signal.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "agent/devices/amd/amd_source.h"
#include "agent/devices/nvidia/nvidia_source.h"
#include "agent/devices/probe.h"
#include "agent/devices/report_text.h"

namespace bimetal::agent {
namespace {

constexpr int kReportFd = 3;

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(kReportFd, text.data(), text.size());
    if (n <= 0) _exit(2);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

class PipeProgress final : public ReadProgress {
 public:
  explicit PipeProgress(std::set<std::string> skipped) : skipped_(std::move(skipped)) {}
  bool ShouldSkip(std::string_view step) const override {
    return skipped_.contains(std::string(step));
  }
  void Begin(std::string_view step) override { WriteAll(StepLine(step)); }

 private:
  std::set<std::string> skipped_;
};

struct ProbeArguments {
  std::string vendor;
  std::string root = "/";
  std::string library;
  bool system_library = false;
  std::set<std::string> skipped;
};

// Nothing where the arguments are no probe's; vendor is empty where they are wrong.
std::optional<ProbeArguments> ParseArguments(int argc, const char* const* argv) {
  int at = 1;
  while (at < argc && std::string_view(argv[at]) != "--probe") ++at;
  if (at == argc) return std::nullopt;
  ProbeArguments out;
  for (; at < argc; ++at) {
    const std::string_view name = argv[at];
    if (name == "--system-library") {
      out.system_library = true;
      continue;
    }
    if (++at == argc) return ProbeArguments{};
    if (name == "--probe") out.vendor = argv[at];
    if (name == "--root") out.root = argv[at];
    if (name == "--library") out.library = argv[at];
    if (name == "--skip") out.skipped.insert(argv[at]);
  }
  return out;
}

}  // namespace

std::optional<int> MaybeRunProbe(int argc, const char* const* argv) {
  auto arguments = ParseArguments(argc, argv);
  if (!arguments) return std::nullopt;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  PipeProgress progress(std::move(arguments->skipped));
  std::unique_ptr<DeviceSource> source;
  if (arguments->vendor == "amd") source = MakeAmdSource(arguments->root);
  if (arguments->vendor == "nvidia") {
    source = MakeNvidiaSource(
        {arguments->root, arguments->library, arguments->system_library || arguments->root == "/"});
  }
  if (!source) return 2;
  WriteAll(ReportText(source->Read(progress)));
  return 0;
}

}  // namespace bimetal::agent
