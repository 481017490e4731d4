#include "kube/retry.h"

#include <algorithm>

namespace bimetal::kube {

Backoff::Backoff(BackoffOptions options, std::uint64_t seed)
    : options_(options), random_(seed), step_(options.initial) {
  options_.initial.v = std::max<std::int64_t>(options_.initial.v, 1);
  options_.cap.v = std::max(options_.cap.v, options_.initial.v);
  options_.jitter_percent = std::clamp(options_.jitter_percent, 0, 100);
  step_ = options_.initial;
}

Millis Backoff::Next() {
  ++attempts_;
  const Millis step = step_;
  step_.v = std::min(options_.cap.v, step_.v * 2);
  const std::int64_t range = step.v * options_.jitter_percent / 100;
  const auto cut = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(range + 1));
  return Millis{step.v - cut};
}

void Backoff::Reset() {
  attempts_ = 0;
  step_ = options_.initial;
}

}  // namespace bimetal::kube
