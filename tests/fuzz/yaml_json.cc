// A file that a user hands to bimetal, as YAML or JSON.
#include "kube/config/yaml_json.h"

#include "kube/codec/json.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const auto json = kube::YamlToJson(text);
  if (!json) return Require(!json.error().message.empty());
  Require(kube::CheckJson(*json).has_value());
  kube::YamlToJson(*json);  // refused where a key is longer than YAML allows
}
