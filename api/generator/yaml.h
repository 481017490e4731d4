#pragma once

#include <string>

#include "api/generator/document.h"

namespace bimetal::api {

// Block-style YAML 1.2, read the same by YAML 1.1 readers, lines of about 100 columns, ending in a
// newline. The same document always gives the same bytes.
std::string ToYaml(const Document& document);

// One line of JSON.
std::string ToJson(const Document& document);

}  // namespace bimetal::api
