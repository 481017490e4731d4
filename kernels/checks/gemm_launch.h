#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/checks/check.h"
#include "kernels/checks/gemm_data.h"

namespace bimetal::kernels {

// How a device is filled: each block computes `tiles_per_block` tiles of `tile` rows and columns.
struct GemmPlan {
  LaunchShape launch;
  std::uint32_t tiles_per_block = 1;
  std::uint32_t tile = kGemmFragment;
  GemmShape shape;
  std::uint64_t slots() const { return std::uint64_t{launch.blocks} * tiles_per_block; }
  std::uint32_t tiles_down() const { return shape.rows / tile; }
  std::uint32_t tiles() const { return tiles_down() * (shape.columns / tile); }
};

// One problem on one device: its operands and the room for its results.
class GemmRun {
 public:
  // Uploads the operands. `kernel` is "bm_gemm_fp16" or the like.
  static Outcome<GemmRun> Make(Device& device, std::string kernel,
                               std::shared_ptr<const GemmProblem> problem, GemmPlan plan);

  // Queues one launch; launches of different salt give a unit different tiles.
  Done Launch(std::uint32_t salt, std::uint32_t passes);
  // What the last launch left; waits for it. Afterwards SilentSlot, Unit and Tile speak of it.
  Done Fetch(Deadline deadline);

  // A slot whose wave left no record.
  std::optional<std::uint64_t> SilentSlot() const;
  std::uint64_t Unit(std::uint64_t slot) const { return records_[slot].unit; }
  std::uint32_t TileOf(std::uint64_t slot) const;
  // The slot's results, row by row, as the kernel computed them.
  std::span<const std::byte> Results(std::uint64_t slot) const;
  // The element of the whole product at `place` of a tile.
  std::size_t ElementOf(std::uint32_t tile, std::size_t place) const;

  const GemmPlan& plan() const { return plan_; }
  const GemmProblem& problem() const { return *problem_; }

 private:
  GemmRun(Device& device, std::string kernel, std::shared_ptr<const GemmProblem> problem,
          GemmPlan plan, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, DeviceBuffer records);

  Device* device_;
  std::string kernel_;
  std::shared_ptr<const GemmProblem> problem_;
  GemmPlan plan_;
  DeviceBuffer a_, b_, c_, device_records_;
  std::vector<GemmRecord> records_;
  std::vector<std::uint64_t> results_;  // of all slots; 8-byte words for the sake of alignment
  GemmArgs last_ = {};
};

}  // namespace bimetal::kernels
