#pragma once

#include <optional>
#include <string_view>

#include "core/base/time.h"

namespace bimetal::op {

// The time that a field of an object names; nullopt where it is empty or no time. Pure.
inline std::optional<TimePoint> TimeOf(std::string_view text) {
  if (text.empty()) return std::nullopt;  // often; an error would cost its words
  const auto time = ParseTime(text);
  return time ? std::optional(*time) : std::nullopt;
}

}  // namespace bimetal::op
