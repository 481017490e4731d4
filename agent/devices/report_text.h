#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/source.h"

namespace bimetal::agent {

// The lines in which a probe process tells what it reads, each useful by itself, so that what came
// before a hang is kept:
//   step TAB <name>                    about to take a step
//   fact TAB <name> TAB <reading>      device / finding / simulated likewise
//   end                                the report is complete
// A reading is <k|u|e> TAB <value> TAB <why>; tabs, newlines, % and control bytes are %XX.

std::string StepLine(std::string_view step);
std::string ReportText(const SourceReport& report);     // ends with the "end" line
std::string DeviceText(const Device& device);           // one device, as in ReportText
std::string TelemetryText(const Telemetry& telemetry);  // of the device before it

// What a probe's output says. Never fails: what cannot be read is left out and counted.
struct ParsedReport {
  SourceReport report;
  bool complete = false;      // the "end" line was there
  std::string last_step;      // the last step begun; empty: none
  std::size_t bad_lines = 0;  // lines that no probe of ours writes
};
ParsedReport ParseReportText(std::string_view text);

}  // namespace bimetal::agent
