#pragma once

#include <array>
#include <string_view>

#include "core/base/result.h"

namespace bimetal::core {

enum class Vendor { kAmd, kNvidia };  // in the order in which they are listed everywhere

inline constexpr std::array<Vendor, 2> kVendors = {Vendor::kAmd, Vendor::kNvidia};

// "amd" | "nvidia".
std::string_view VendorName(Vendor vendor);
// Error kInvalid names the text and the two values that are allowed.
Result<Vendor> ParseVendor(std::string_view text);
// The extended resource that the vendor's own device plug-in offers: "amd.com/gpu",
// "nvidia.com/gpu".
std::string_view DefaultResourceName(Vendor vendor);

}  // namespace bimetal::core
