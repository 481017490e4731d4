// The lines of a validation program, from the socket to the judged verdicts.
#include "agent/verdicts/run_reader.h"

#include "core/validation/judge.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  agent::RunReader reader;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (!reader.AddLine(text.substr(0, end))) break;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  namespace validation = core::validation;
  static const auto table = validation::FloorTable::BuiltIn();
  static const std::vector<validation::FloorOverride> overrides;
  static const validation::FleetMedians fleet;
  validation::DeviceFacts device;
  device.id = "GPU-1";
  device.model = "NVIDIA H100 80GB HBM3";
  const auto& run = reader.received().run;
  const auto judged = validation::Judge(run, {device}, {table, overrides, fleet, 5, ""});
  Require(static_cast<int>(judged.size()) == run.verdicts_size());
  for (const auto& one : judged) {
    // Nothing turns into a pass that the program did not bring.
    if (one.device != "GPU-1") Require(one.verdict == validation::Verdict::kInconclusive);
    if (one.verdict == validation::Verdict::kPass && one.floor && one.floor->binding) {
      Require(one.rate && one.rate->samples >= validation::kMinSamples);
    }
  }
  validation::Summarize(judged, {device}, "");
}
