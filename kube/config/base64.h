#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace bimetal::kube {

// Standard base64 with padding; white space between characters is skipped. Error: kInvalid, without
// the text.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace bimetal::kube
