#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/gang.h"
#include "core/queue/choice.h"
#include "core/queue/cycle.h"
#include "core/queue/space.h"

// Why jobs wait, in words.
namespace bimetal::core::queue {

std::string_view ReasonOf(placement::Obstacle obstacle);

// Why one variant cannot start now.
struct VariantFinding {
  VariantBlocker blocker;
  bool never = false;  // see Refusal
};

// Fills reason, message, never and blockers from one finding per variant.
void Summarise(const std::vector<VariantFinding>& findings, Refusal* refusal);

// `text` cut to `max` bytes at the end of a character, with "..." where something was cut.
std::string Cut(std::string text, std::size_t max);

inline constexpr std::size_t kMaxMessage = 1024;

// A job that waits at the end of a cycle, with what kept it back beside capacity.
struct Waiting {
  const Job* job = nullptr;
  int queue = kNoQueue;
  // A reason that concerns the whole job; empty: its variants have reasons.
  std::string reason, message;
  bool never = false;
  const HeldPlace* held = nullptr;  // what is held for it
  std::vector<std::size_t> order;   // the variants that it may start as, by its selection policy
  std::set<std::size_t> outpaced;   // of these, the ones that waiting for a faster one beats
};

// A Strict queue's job that others of the queue may not pass, by vendor.
using StrictHeads = std::map<Vendor, const Job*>;

// Says why jobs wait, of the state at the end of a cycle. Loop thread only.
class RefusalWriter {
 public:
  // `heads` by queue. The space does not change any more.
  RefusalWriter(Space& space, Choice& choice, const std::map<int, StrictHeads>& heads,
                TimePoint now)
      : space_(space), choice_(choice), heads_(heads), now_(now) {}

  Refusal Write(const Waiting& waiting);

 private:
  std::optional<VariantFinding> FindingOfHold(const Waiting& waiting, std::size_t variant) const;
  VariantFinding Find(const Waiting& waiting, std::size_t variant);
  VariantFinding FindIn(Lane& lane, const Waiting& waiting, const Job& job, std::size_t variant);
  std::optional<VariantFinding> FindInAny(const Waiting& waiting, std::size_t variant);
  VariantFinding TooDear(const Job& job, std::size_t variant) const;
  void AddChoice(const Waiting& waiting, std::size_t variant, VariantFinding* finding) const;
  void FindQuota(const Waiting& waiting, Lane& lane, const Variant& variant,
                 VariantFinding* finding) const;
  const placement::GangResult& PlaceIn(Lane& lane, const Job& job, const Variant& variant);
  const Job* AheadOf(const Waiting& waiting, Vendor vendor) const;

  Space& space_;
  Choice& choice_;
  const std::map<int, StrictHeads>& heads_;
  TimePoint now_;
};

// When all that a hold awaits has ended.
std::optional<StartEstimate> EstimateOf(const HeldPlace& held, TimePoint now);

}  // namespace bimetal::core::queue
