#pragma once

#include <string>

#include "core/base/result.h"

namespace bimetal::kube {

// Whether all of a YAML text can be read, however many documents it holds. yaml-cpp's LoadAll does
// not come back from a text like ", a: b": ask here first. Error kInvalid names the line.
Status CheckYaml(const std::string& yaml);

}  // namespace bimetal::kube
