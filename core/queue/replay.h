#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/queue/cycle.h"

// Recorded cycles: what one saw and what it decided, kept so that the decision can be made again.
namespace bimetal::core::queue {

// One cycle as JSON, {"snapshot":...,"plan":...} and a line break; the same value is always the
// same bytes.
std::string WriteCycle(const Snapshot& snapshot, const Plan& plan);

// A recorded cycle, decided again.
struct Replay {
  // Where the two plans differ first: "assignments[3].pods[0].node: "n1" was recorded, "n2" is
  // decided now"; empty where they are the same bytes.
  std::string difference;
  // The same for the snapshot, as recorded and as read: not empty where another version wrote it
  // with more or fewer members.
  std::string unread;
};

// Reads what WriteCycle wrote, or the same JSON with white space, and decides again. Error kData
// says what cannot be read. Pure; safe with any bytes.
Result<Replay> ReplayCycle(std::string_view text);

}  // namespace bimetal::core::queue
