#include "core/queue/replay.h"

#include <algorithm>

#include "core/queue/json.h"
#include "core/queue/record.h"

namespace bimetal::core::queue {
namespace {

constexpr std::size_t kMostShown = 200;  // bytes of a value in a message

// What the two sides of a comparison are called.
struct Sides {
  const char* before;
  const char* after;
};

std::string Shown(const Json* json) {
  if (json == nullptr) return "nothing";
  std::string text = WriteJson(*json);
  if (text.size() > kMostShown) text.resize(kMostShown), text += "...";
  return text;
}

std::string Difference(const std::string& path, const Json* before, const Json* after,
                       const Sides& sides) {
  return path + ": " + Shown(before) + " " + sides.before + ", " + Shown(after) + " " + sides.after;
}

// Empty where the two are the same bytes.
std::string FirstDifference(const std::string& path, const Json& before, const Json& after,
                            const Sides& sides) {
  if (before.type != after.type) return Difference(path, &before, &after, sides);
  for (std::size_t i = 0; i < std::max(before.items.size(), after.items.size()); ++i) {
    const std::string place = path + "[" + std::to_string(i) + "]";
    const Json* a = i < before.items.size() ? &before.items[i] : nullptr;
    const Json* b = i < after.items.size() ? &after.items[i] : nullptr;
    if (a == nullptr || b == nullptr) return Difference(place, a, b, sides);
    std::string found = FirstDifference(place, *a, *b, sides);
    if (!found.empty()) return found;
  }
  const std::string dot = path.empty() ? "" : path + ".";
  for (const auto& [name, value] : before.members) {
    const Json* other = after.Find(name);
    if (other == nullptr) return Difference(dot + name, &value, nullptr, sides);
    std::string found = FirstDifference(dot + name, value, *other, sides);
    if (!found.empty()) return found;
  }
  for (const auto& [name, value] : after.members) {
    if (before.Find(name) == nullptr) return Difference(dot + name, nullptr, &value, sides);
  }
  // The same values; what is left is the order of members.
  if (WriteJson(before) != WriteJson(after)) return Difference(path, &before, &after, sides);
  return "";
}

}  // namespace

std::string WriteCycle(const Snapshot& snapshot, const Plan& plan) {
  return "{\"snapshot\":" + WriteSnapshot(snapshot) + ",\"plan\":" + WritePlan(plan) + "}\n";
}

Result<Replay> ReplayCycle(std::string_view text) {
  BIMETAL_TRY_ASSIGN(const Json cycle, ParseJson(text));
  const Json* seen = cycle.Find("snapshot");
  const Json* recorded = cycle.Find("plan");
  if (seen == nullptr || recorded == nullptr) {
    return Fail(ErrorCode::kData,
                "expected an object with snapshot and plan, as the operator records a cycle");
  }
  auto snapshot = SnapshotFromJson(*seen);
  if (!snapshot) return tl::unexpected<Error>(WithContext(snapshot.error(), "snapshot"));
  if (recorded->type != Json::Type::kObject) {
    return Fail(ErrorCode::kData, "plan: expected an object");
  }
  Replay out;
  BIMETAL_TRY_ASSIGN(const Json read, ParseJson(WriteSnapshot(*snapshot)));
  out.unread = FirstDifference("", *seen, read, {"was recorded", "is read"});
  BIMETAL_TRY_ASSIGN(const Json plan, ParseJson(WritePlan(Decide(*snapshot))));
  out.difference = FirstDifference("", *recorded, plan, {"was recorded", "is decided now"});
  return out;
}

}  // namespace bimetal::core::queue
