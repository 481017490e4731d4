// Reads a configuration from stdin with the parser of the program that it is for:
//   bimetal-check-config operator|agent
// Exit status 0 where the program would start with it; else its message on stderr.
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "agent/config/config.h"
#include "operator/config/config.h"

namespace {

template <class T>
int Report(const bimetal::Result<T>& parsed) {
  if (parsed) return 0;
  std::cerr << parsed.error().message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::string_view program = argc == 2 ? argv[1] : "";
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (program == "operator") return Report(bimetal::op::ParseConfig(text));
  if (program == "agent") return Report(bimetal::agent::ParseAgentConfig(text));
  std::cerr << "usage: bimetal-check-config operator|agent <FILE\n";
  return 2;
}
