// Quantities, and what is written of them.
#include "core/base/quantity.h"

#include "core/base/base64.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  ParseQuantity(text);
  if (const auto milli = ParseQuantityMilli(text)) {
    const auto back = ParseQuantityMilli(FormatQuantityMilli(*milli));
    Require(back && *back == *milli);
  }
  if (const auto bytes = Base64Decode(text)) Require(Base64Encode(*bytes) == text);
  const auto again = Base64Decode(Base64Encode(text));
  Require(again && *again == text);
}
