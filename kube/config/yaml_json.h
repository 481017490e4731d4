#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace bimetal::kube {

// One YAML document as JSON, by the rules of Kubernetes' own tools: quoted scalars are strings,
// plain ones null, booleans or numbers where they look so. Errors: kInvalid for what is no YAML,
// has several documents, is nested deeper than 64 or would be longer than 1 MiB.
Result<std::string> YamlToJson(std::string_view yaml);

}  // namespace bimetal::kube
