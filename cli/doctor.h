#pragma once

#include <functional>
#include <string>

#include "agent/devices/inventory.h"
#include "agent/diagnosis/diagnose.h"
#include "cli/run.h"

namespace bimetal::cli {

// Exit statuses of `bimetal doctor`, beside kExitSuccess and kExitUsage.
inline constexpr int kExitFindings = 1;  // a Warning or a Critical
inline constexpr int kExitBlind = 2;     // it could not look

// What the doctor saw. A plain value.
struct Examination {
  std::string root;
  agent::Inventory inventory;
  agent::Diagnosis diagnosis;
};

// Reads the devices of the machine under a root folder; may take seconds where a driver hangs.
using ReadDevices = std::function<agent::Inventory(const std::string& root)>;

// Reads them as the agent does: in a probe process, which is this program again (its main must call
// agent::MaybeRunProbe first).
agent::Inventory ReadDevicesInProbe(const std::string& root);

// Looks at the machine under line.root and says what is wrong. Needs no cluster. Error kNotFound:
// it cannot look (exit status kExitBlind).
Result<Answer> RunDoctor(const CommandLine& line, bool terminal, const ReadDevices& read);

// True: coloured. `automatic` is what "auto" means here.
bool WantsColor(Color color, bool automatic);

// The text for people: the devices, then the findings, the gravest first, with what was seen and
// what to do. Pure.
std::string RenderExamination(const Examination& seen, bool color);

// The same for programs: one JSON object. Pure.
std::string ExaminationJson(const Examination& seen);

// kExitSuccess, or kExitFindings where there is a Warning or a Critical. Pure.
int ExitStatusOf(const agent::Diagnosis& diagnosis);

}  // namespace bimetal::cli
