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

std::string_view EffectName(Effect effect) {
  switch (effect) {
    case Effect::kNone:
      return "None";
    case Effect::kRevalidate:
      return "Revalidate";
    case Effect::kCordon:
      return "Cordon";
  }
  return "Cordon";
}

}  // namespace bimetal::agent
