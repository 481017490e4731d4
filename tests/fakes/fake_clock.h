#pragma once

#include "core/base/time.h"

namespace bimetal::test {

// A clock that moves only when told to.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(TimePoint now = TimePoint{1'800'000'000'000}) : now_(now) {}
  TimePoint Now() const override { return now_; }
  Millis Monotonic() const override { return Millis{now_.ms}; }
  void Advance(Millis by) { now_ = now_ + by; }

 private:
  TimePoint now_;
};

}  // namespace bimetal::test
