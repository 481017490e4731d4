#pragma once

#include <string_view>

#include "agent/devices/report_text.h"
#include "agent/devices/source.h"
#include "tests/fuzz/fuzz.h"

namespace bimetal::fuzz {

// Reads to the end, and requires that what a probe says of the report reads back the same.
inline void ReadAndReadBack(agent::DeviceSource& source) {
  class NoProgress final : public agent::ReadProgress {
   public:
    bool ShouldSkip(std::string_view) const override { return false; }
    void Begin(std::string_view) override {}
  };
  NoProgress progress;
  const auto report = source.Read(progress);
  const auto parsed = agent::ParseReportText(agent::ReportText(report));
  Require(parsed.complete && parsed.bad_lines == 0);
  Require(parsed.report.devices == report.devices);
}

}  // namespace bimetal::fuzz
