// JSON without a type: checks, overlays, strings.
#include "kube/codec/json.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const std::string quoted = kube::JsonString(text);
  Require(kube::CheckJson(quoted).has_value());
  const std::string valid = kube::ReplaceInvalidUtf8(text);
  Require(kube::ReplaceInvalidUtf8(valid) == valid);
  const bool is_json = kube::CheckJson(text).has_value();
  const auto parts = Parts(text, 2);
  const auto laid = kube::OverlayJson(parts[0], parts.size() > 1 ? parts[1] : "{}");
  if (laid) Require(kube::CheckJson(*laid).has_value());
  if (is_json && parts.size() == 1 && laid) Require(!laid->empty());
}
