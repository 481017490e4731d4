// A verdict of any numbers: decimals, distributions, units.
#include "core/validation/rates.h"

#include "core/validation/judge.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  namespace validation = core::validation;
  if (const auto value = validation::ParseMilli(text)) {
    const auto back = validation::ParseMilli(validation::FormatMilli(*value));
    Require(back && *back == *value);
  }
  api::Verdict verdict;
  if (!verdict.ParseFromArray(text.data(), static_cast<int>(text.size()))) return;
  const auto check = validation::FindRateCheck(verdict.check());
  if (!check) return;
  if (const auto rate = validation::ReadRate(verdict, *check)) {
    Require(rate->min.v >= 0 && rate->min <= rate->p5 && rate->median <= rate->max);
    Require(rate->samples >= validation::kMinSamples);
  }
}
