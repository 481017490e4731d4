#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/gang.h"
#include "core/queue/cycle.h"

// The words in which a refusal is told.
namespace bimetal::core::queue {

std::string_view ReasonOf(placement::Obstacle obstacle);

// Why one variant cannot start now.
struct VariantFinding {
  VariantBlocker blocker;
  PoolName pool;       // the pool that comes closest; empty where the vendor has none
  bool never = false;  // see Refusal
};

// Fills reason, message, never and blockers from one finding per variant.
void Summarise(const std::vector<VariantFinding>& findings, Refusal* refusal);

// `text` cut to `max` bytes at the end of a character, with "..." where something was cut.
std::string Cut(std::string text, std::size_t max);

inline constexpr std::size_t kMaxMessage = 1024;

}  // namespace bimetal::core::queue
