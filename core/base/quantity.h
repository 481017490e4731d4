#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace bimetal {

// A Kubernetes quantity in thousandths: "1" is 1000, "250m" is 250, "1Ki" is 1'024'000. Rounds up
// to a whole thousandth, as Kubernetes does for values finer than it keeps. Error kInvalid for text
// that is no quantity and for values outside +-9.2e15.
Result<std::int64_t> ParseQuantityMilli(std::string_view text);

// The same in whole units, rounded up (bytes, pods, devices). Range: all of int64.
Result<std::int64_t> ParseQuantity(std::string_view text);

// Thousandths as the shortest decimal quantity: 1500 -> "1500m", 2000 -> "2".
std::string FormatQuantityMilli(std::int64_t milli);

}  // namespace bimetal
