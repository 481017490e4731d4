#include <string>

#include "kernels/checks/modules.h"
#include "kernels/program/flags.h"

namespace bimetal::kernels {

std::string HelpText() {
  return R"(bimetal-validate: proves GPUs with native kernels; one JSON line a verdict.

usage: bimetal-validate [flags]

  --backend auto|cuda|hip|host  where kernels run (auto: by --machine, --vendor, or what answers;
                                never the host in a vendor's place)
  --vendor nvidia|amd           only devices of this vendor
  --device ID                   a device's id or PCI address; may be repeated (all devices)
  --level L0|L1|L2              inventory; admission; deep, with more rounds and load (L1)
  --checks a,b                  only these checks, whatever their level (all of the level)
  --expect-devices N            check inventory fails on any other number of devices
  --machine PATH                simulated devices for the host back end: devices.json or its folder
  --run-id UID                  names the run in every line (random)
  --fingerprint TEXT            what the verdicts are bound to; passed through
  --report unix:/path.sock      also send the lines there and wait for {"ok":true}
  --report-timeout SECONDS      for all attempts to report (30)
  --seed N                      of all patterns and inputs (1)
  --memory-bytes N              tested by memory checks (80 % of the free memory; host: 4 MiB)
  --stress SECONDS              of sustained load in check stress (60)
  --timeout SECONDS             for the whole run (L0 5, L1 60, L2 600)
  --list                        the checks
  --version, --help

exit status: 0 every check passed, 1 a check failed, 2 inconclusive or not reported, 64 usage
)";
}

std::string VersionText() {
  const ModuleImage& image = MemoryPatternModule();
  std::string cuda;
  for (const std::string_view arch : image.cuda_archs) cuda += " " + std::string(arch);
  std::string hip;
  for (const HipImage& code : image.hip_images) hip += " " + std::string(code.arch);
  return "bimetal-validate " + std::string(ProgramVersion()) +
         "\ncuda kernels:" + (cuda.empty() ? " none (built with BIMETAL_CUDA=OFF)" : cuda) +
         "\nhip kernels:" + (hip.empty() ? " none (built with BIMETAL_HIP=OFF)" : hip) +
         "\nhost kernels: yes\n";
}

std::string ListText() {
  std::string text;
  for (const Check& check : AllChecks()) {
    text += std::string(check.key) + "\tL" + std::to_string(check.level) + "\t" +
            std::string(check.description) + "\n";
  }
  return text;
}

}  // namespace bimetal::kernels
