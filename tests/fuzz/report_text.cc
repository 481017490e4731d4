// What a probe process wrote before it ended, crashed or was killed.
#include "agent/devices/report_text.h"

#include "agent/devices/inventory.h"
#include "agent/inventory/to_api.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const auto parsed = agent::ParseReportText(text);
  const auto again = agent::ParseReportText(agent::ReportText(parsed.report));
  Require(again.complete && again.bad_lines == 0);
  Require(again.report.devices == parsed.report.devices);
  agent::Inventory inventory;
  agent::AddReport(parsed.report, agent::Vendor::kAmd, inventory);
  agent::FinishInventory(inventory);
  const auto told = agent::ToApi(inventory);
  Require(told.findings_size() <= agent::kMaxReportedFindings);
  // A text that is no UTF-8 would make the whole report unsendable.
  std::string bytes;
  Require(told.SerializeToString(&bytes));
}
