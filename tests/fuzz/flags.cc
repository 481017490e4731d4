// The command line of the validation program, one argument a line.
#include "kernels/program/flags.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  std::vector<std::string> arguments;
  while (arguments.size() < 32) {
    const auto end = text.find('\n');
    arguments.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  const auto parsed = kernels::ParseFlags(arguments);
  if (const auto* error = std::get_if<kernels::UsageError>(&parsed)) {
    Require(!error->message.empty());
  }
}
