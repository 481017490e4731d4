// The tables of the diagnosis: rules and kernel lines.
#include "agent/devices/kernel_log.h"
#include "agent/diagnosis/csv.h"
#include "agent/diagnosis/rules.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  for (const auto line : agent::CsvLines(text)) agent::SplitCsv(line);
  std::vector<std::string> bad;
  for (const auto& rule : agent::ParseRules(text, &bad)) Require(!rule.code.empty());
  agent::ParseKernelLineRules(text);
}
