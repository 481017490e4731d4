// The operator's own configuration, and the line that says what is in force.
#include "operator/config/config.h"

#include "kube/codec/json.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const auto config = op::ParseConfig(text);
  if (!config) return Require(!config.error().message.empty());
  const std::string line = op::Describe(*config);
  Require(line.find('\n') == std::string::npos);
  Require(kube::CheckJson(line).has_value());
  // JSON is YAML, and the keys are those of the file.
  const auto again = op::ParseConfig(line);
  Require(again && op::Describe(*again) == line);
}
