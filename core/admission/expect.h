#pragma once

#include <map>
#include <string>

#include "api/fleet.pb.h"
#include "core/admission/decide.h"

namespace bimetal::core::admission {

// How what was found differs from what the profile expects, by device: "the profile expects 8
// devices, found 7". `unknown`: what could not be read, so that nothing is known of it.
struct Mismatch {
  std::map<DeviceId, std::string> failed;
  std::map<DeviceId, std::string> unknown;
};

// Begins the evidence of every mismatch, so that it can be told from what a check saw.
inline constexpr std::string_view kProfileExpects = "the profile expects ";

Expect ExpectFromApi(const api::ExpectedNode& expect);

// A mismatch of the whole node (number of devices, driver) is one of every device.
Mismatch Compare(const Expect& expect, const Report& report);

}  // namespace bimetal::core::admission
