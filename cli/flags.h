#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace bimetal::cli {

enum class Command { kNodes, kJobs, kExplain, kValidate, kReplay, kDoctor, kVersion, kHelp };
enum class Output { kTable, kJson };
enum class Color { kAuto, kAlways, kNever };

// The command line, parsed and checked. Empty strings: not given.
struct CommandLine {
  Command command = Command::kHelp;
  // kHelp: the command that is asked about; kHelp itself for the program as a whole.
  Command topic = Command::kHelp;
  std::string kubeconfig{};
  std::string context{};
  std::string ns{};
  bool all_namespaces = false;
  Output output = Output::kTable;
  // kExplain: the job's name, and whether to try what else it could get.
  std::string job{};
  bool what_if = false;
  // kValidate: a node, with the level (empty: the profile's) and whether to wait for the verdict;
  // or the file of a profile, to be tried without a change.
  std::string node{};
  std::string level{};
  bool wait = false;
  std::string profile{};
  // kReplay: a recorded cycle.
  std::string file{};
  // kDoctor: the folder that holds the machine's file tree; empty: "/".
  std::string root{};
  Color color = Color::kAuto;
};

// `arguments` are without the program's name. Options stand before or behind the command, as
// --option VALUE, --option=VALUE, -o VALUE or -oVALUE; the last of two wins.
// Errors: kInvalid, a usage error; the message says what is wrong and what would be right.
Result<CommandLine> ParseFlags(const std::vector<std::string>& arguments);

// How the program is called, from argv[0]: "kubectl bimetal" for a file called kubectl-bimetal,
// else "bimetal".
std::string ProgramName(std::string_view argv0);

// The usage text of `topic`.
std::string HelpText(Command topic, const std::string& program);

}  // namespace bimetal::cli
