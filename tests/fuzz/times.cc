// Times and durations, and what is written of them.
#include "core/base/time.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  if (const auto time = ParseTime(text)) {
    const auto back = ParseTime(FormatMicroTime(*time));
    Require(back && *back == *time);
    Require(ParseTime(FormatTime(*time)).has_value());
  }
  if (const auto duration = ParseDuration(text)) {
    Require(duration->v >= 0);
    const auto back = ParseDuration(FormatDuration(*duration));
    Require(back && *back == *duration);
  }
}
