#include "core/model/vendor.h"

#include <string>

namespace bimetal::core {

std::string_view VendorName(Vendor vendor) { return vendor == Vendor::kAmd ? "amd" : "nvidia"; }

Result<Vendor> ParseVendor(std::string_view text) {
  for (const Vendor vendor : kVendors) {
    if (text == VendorName(vendor)) return vendor;
  }
  return Fail(ErrorCode::kInvalid, "vendor \"" + std::string(text.substr(0, 64)) +
                                       "\" is unknown; use \"amd\" or \"nvidia\"");
}

std::string_view DefaultResourceName(Vendor vendor) {
  return vendor == Vendor::kAmd ? "amd.com/gpu" : "nvidia.com/gpu";
}

}  // namespace bimetal::core
