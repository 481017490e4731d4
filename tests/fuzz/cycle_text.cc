// A recorded cycle: what is read of it is written the same, and can be decided.
#include "core/queue/record.h"

#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const auto snapshot = core::queue::ReadSnapshot(text);
  if (!snapshot) return Require(!snapshot.error().message.empty());
  const std::string written = core::queue::WriteSnapshot(*snapshot);
  const auto again = core::queue::ReadSnapshot(written);
  Require(again && core::queue::WriteSnapshot(*again) == written);
  core::queue::WritePlan(core::queue::Decide(*snapshot));
}
