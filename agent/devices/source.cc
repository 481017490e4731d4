#include "agent/devices/source.h"

namespace bimetal::agent {

std::string_view VendorName(Vendor vendor) { return vendor == Vendor::kNvidia ? "nvidia" : "amd"; }

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

}  // namespace bimetal::agent
