#pragma once

#include <optional>

#include "core/placement/board.h"
#include "core/placement/gang.h"

namespace bimetal::core::placement {

// Says why a gang has no place on a board, by trying it in other worlds. Those are made once and
// kept, so that many jobs can be explained. Loop thread only.
class Explainer {
 public:
  explicit Explainer(Board* board) : board_(board) {}

  // True where the gang would fit on the empty, fully validated pool. Independent of what is held.
  bool CouldEverFit(const Job& job, const Variant& variant) { return FitsIn(full_, job, variant); }

  // REQUIRES: board->Find(job, variant) finds nothing, and the board does not change after the
  // first call. Result without pods.
  GangResult Explain(const Job& job, const Variant& variant);

 private:
  struct OtherWorld {
    World world;
    std::optional<Board> board;
  };
  bool FitsIn(OtherWorld& other, const Job& job, const Variant& variant);
  Obstacle ObstacleFor(const Job& job, const Variant& variant);
  std::string RemedyFor(const GangResult& result, const Job& job, const Variant& variant);
  std::string CapacityRemedy(const GangResult& result, const Job& job, const Variant& variant);
  std::string UnknownLevelRemedy(const Job& job, const Variant& variant);
  bool LacksLabels(const Job& job, const Variant& variant);

  Board* board_;
  OtherWorld full_{{.nobody_holds = true, .all_open = true, .any_state = true}, std::nullopt};
  OtherWorld full_unlimited_{
      {.nobody_holds = true, .all_open = true, .any_state = true, .unlimited = true}, std::nullopt};
  OtherWorld full_anywhere_{
      {.nobody_holds = true, .all_open = true, .any_state = true, .anywhere = true}, std::nullopt};
  OtherWorld anywhere_{{.anywhere = true}, std::nullopt};
  OtherWorld unlimited_{{.unlimited = true}, std::nullopt};
  OtherWorld released_{{.nobody_holds = true}, std::nullopt};
  OtherWorld open_{{.all_open = true}, std::nullopt};
  OtherWorld released_open_{{.nobody_holds = true, .all_open = true}, std::nullopt};
};

}  // namespace bimetal::core::placement
