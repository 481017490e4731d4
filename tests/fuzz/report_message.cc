// A report as it comes over the wire from a node that may have been taken.
#include "operator/agents/check_report.h"

#include "api/agent.pb.h"
#include "core/validation/judge.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  api::ReportNodeRequest request;
  if (!request.ParseFromArray(text.data(), static_cast<int>(text.size()))) return;
  if (!op::CheckReport(request)) return;
  namespace validation = core::validation;
  static const auto table = validation::FloorTable::BuiltIn();
  std::vector<validation::DeviceFacts> devices;
  for (const auto& device : request.inventory().devices()) {
    devices.push_back(validation::FactsFromApi(device));
  }
  for (const auto& run : request.runs()) {
    validation::Summarize(validation::Judge(run, devices, {table, {}, {}, 5, ""}), devices, "");
  }
}
