// Machine descriptions of the validation program, and its own JSON.
#include "kernels/machine/machine.h"

#include "kernels/json/json.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  std::string error;
  const auto value = kernels::ParseJson(text, &error);
  Require(value.has_value() != !error.empty());
  const auto machine = kernels::ParseMachine(text, "fuzz");
  if (machine.ok()) Require(value.has_value() && machine.value().size() <= 64);
  const std::string line = kernels::JsonLine().Add("text", text).Text();
  const auto back = kernels::ParseJson(line, &error);
  Require(back.has_value() && back->Find("text")->AsString() != nullptr);
}
