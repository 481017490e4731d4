#include "core/queue/explain.h"

#include <algorithm>
#include <tuple>

namespace bimetal::core::queue {
namespace {

std::string Number(std::int64_t n) { return std::to_string(n); }

std::string Sentence(const VariantFinding& finding) {
  const VariantBlocker& blocker = finding.blocker;
  std::string text = "variant " + blocker.variant + " needs " + Number(blocker.need) +
                     (blocker.need == 1 ? " device" : " devices") + " in one pool, ";
  if (blocker.reason == "WaitingForQuota") {
    text += Number(blocker.free) + " are left of the queue's quota";
  } else {
    text += Number(blocker.free) + (blocker.free == 1 ? " is free" : " are free");
  }
  return text + (finding.never ? "; it can never start unless " : "; it can start when ") +
         blocker.unblocked_by;
}

// Waiting before never; then the smallest shortfall.
auto Distance(const VariantFinding& finding) {
  const VariantBlocker& blocker = finding.blocker;
  return std::tuple(finding.never, blocker.reason == "NoMatchingDevice",
                    std::max<std::int64_t>(0, blocker.need - blocker.free));
}

}  // namespace

std::string_view ReasonOf(placement::Obstacle obstacle) {
  switch (obstacle) {
    case placement::Obstacle::kNoMatchingDevice:
      return "NoMatchingDevice";
    case placement::Obstacle::kExceedsCapacity:
      return "ExceedsCapacity";
    case placement::Obstacle::kWaitingForValidation:
      return "WaitingForValidation";
    case placement::Obstacle::kWaitingForNodeCapacity:
      return "WaitingForNodeCapacity";
    case placement::Obstacle::kWaitingForDevices:
    case placement::Obstacle::kNone:
      break;
  }
  return "WaitingForDevices";
}

std::string Cut(std::string text, std::size_t max) {
  if (text.size() <= max) return text;
  std::size_t end = max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "...";
}

void Summarise(const std::vector<VariantFinding>& findings, Refusal* refusal) {
  std::string message;
  refusal->never = true;
  for (const VariantFinding& finding : findings) {
    message += (message.empty() ? "" : ". ") + Sentence(finding);
    refusal->never = refusal->never && finding.never;
    refusal->blockers.push_back(finding.blocker);
  }
  const auto closest = std::min_element(
      findings.begin(), findings.end(),
      [](const VariantFinding& a, const VariantFinding& b) { return Distance(a) < Distance(b); });
  if (closest != findings.end()) refusal->reason = closest->blocker.reason;
  refusal->message = Cut(std::move(message), kMaxMessage);
}

}  // namespace bimetal::core::queue
