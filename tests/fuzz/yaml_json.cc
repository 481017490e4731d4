// A file that a user hands to bimetal, as YAML or JSON.
#include "kube/config/yaml_json.h"

#include "kube/codec/json.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const auto json = kube::YamlToJson(text);
  if (!json) return Require(!json.error().message.empty());
  Require(kube::CheckJson(*json).has_value());
  const auto again = kube::YamlToJson(*json);
  Require(again && kube::CheckJson(*again).has_value());
}
