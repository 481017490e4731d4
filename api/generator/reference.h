#pragma once

#include <string>
#include <vector>

#include "api/generator/document.h"

namespace bimetal::api {

// docs/reference/api.md: a table of the fields of each CustomResourceDefinition.
std::string ReferencePage(const std::vector<Document>& crds);

}  // namespace bimetal::api
