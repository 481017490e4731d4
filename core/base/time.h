#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace bimetal {

// Milliseconds; every duration of the house is one of these.
struct Millis {
  std::int64_t v = 0;
  auto operator<=>(const Millis&) const = default;
};

constexpr Millis Seconds(std::int64_t s) { return Millis{s * 1000}; }
constexpr Millis Minutes(std::int64_t m) { return Seconds(m * 60); }
constexpr Millis operator+(Millis a, Millis b) { return Millis{a.v + b.v}; }
constexpr Millis operator-(Millis a, Millis b) { return Millis{a.v - b.v}; }

// A point in wall-clock time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
struct TimePoint {
  std::int64_t ms = 0;
  auto operator<=>(const TimePoint&) const = default;
};

constexpr TimePoint operator+(TimePoint t, Millis d) { return TimePoint{t.ms + d.v}; }
constexpr TimePoint operator-(TimePoint t, Millis d) { return TimePoint{t.ms - d.v}; }
constexpr Millis operator-(TimePoint a, TimePoint b) { return Millis{a.ms - b.ms}; }

// RFC 3339 as Kubernetes writes metav1.Time (whole seconds): "2026-01-31T12:00:00Z".
std::string FormatTime(TimePoint t);
// RFC 3339 with microseconds, as metav1.MicroTime: "2026-01-31T12:00:00.123000Z".
std::string FormatMicroTime(TimePoint t);
// Accepts RFC 3339 with any number of fraction digits (cut to ms) and any offset. Error: kInvalid.
Result<TimePoint> ParseTime(std::string_view text);

// Go's duration text as metav1.Duration uses it: "300ms", "1h15m30s", "1.5h". Error: kInvalid, also
// for negative values and values over 100 years.
Result<Millis> ParseDuration(std::string_view text);
// The shortest of Go's forms, whole milliseconds: "1h15m30s", "0s".
std::string FormatDuration(Millis d);

// Where the time comes from; the system's in production, a settable one in tests. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time, for people and for the API.
  virtual TimePoint Now() const = 0;
  // Milliseconds that never go back, for deadlines and intervals within this process.
  virtual Millis Monotonic() const = 0;
};

// The system's clock. Thread-safe.
class SystemClock final : public Clock {
 public:
  TimePoint Now() const override;
  Millis Monotonic() const override;
};

}  // namespace bimetal
