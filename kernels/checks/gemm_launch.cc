#include "kernels/checks/gemm_launch.h"

#include <atomic>
#include <utility>

#include "kernels/checks/modules.h"

namespace bimetal::kernels {

Outcome<GemmRun> GemmRun::Make(Device& device, std::string kernel,
                               std::shared_ptr<const GemmProblem> problem, GemmPlan plan) {
  const std::uint64_t result_bytes =
      plan.slots() * plan.tile * plan.tile * FormatInfo(problem->format).result_bytes;
  KERNELS_TRY_ASSIGN(DeviceBuffer a, DeviceBuffer::Make(device, problem->a.size()));
  KERNELS_TRY_ASSIGN(DeviceBuffer b, DeviceBuffer::Make(device, problem->b.size()));
  KERNELS_TRY_ASSIGN(DeviceBuffer c, DeviceBuffer::Make(device, result_bytes));
  KERNELS_TRY_ASSIGN(DeviceBuffer records,
                     DeviceBuffer::Make(device, plan.slots() * sizeof(GemmRecord)));
  KERNELS_TRY(device.Upload(a.get(), problem->a));
  KERNELS_TRY(device.Upload(b.get(), problem->b));
  GemmRun run(device, std::move(kernel), std::move(problem), plan, std::move(a), std::move(b),
              std::move(c), std::move(records));
  run.records_.resize(plan.slots());
  run.results_.resize(result_bytes / 8);
  return run;
}

GemmRun::GemmRun(Device& device, std::string kernel, std::shared_ptr<const GemmProblem> problem,
                 GemmPlan plan, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c,
                 DeviceBuffer records)
    : device_(&device),
      kernel_(std::move(kernel)),
      problem_(std::move(problem)),
      plan_(plan),
      a_(std::move(a)),
      b_(std::move(b)),
      c_(std::move(c)),
      device_records_(std::move(records)) {}

Done GemmRun::Launch(std::uint32_t salt, std::uint32_t passes) {
  last_.a = a_.address<void>();
  last_.b = b_.address<void>();
  last_.c = c_.address<void>();
  last_.records = device_records_.address<GemmRecord>();
  static std::atomic<std::uint64_t> serial = 0;  // no two launches of a process share a token
  last_.token = Mix(++serial);
  // Both halves alike, so that results of 4 and of 8 bytes are unmasked in one way.
  last_.mask = (last_.token & 0xffffffffu) * 0x100000001ull;
  last_.rows = plan_.shape.rows;
  last_.columns = plan_.shape.columns;
  last_.chunks = plan_.shape.chunks;
  last_.passes = passes;
  last_.salt = salt;
  last_.tiles_per_block = plan_.tiles_per_block;
  return LaunchWith(*device_, GemmModule(), kernel_, plan_.launch, last_);
}

Done GemmRun::Fetch(Deadline deadline) {
  KERNELS_TRY(device_->Synchronize(deadline));
  KERNELS_TRY(
      device_->Download(device_records_.get(), std::as_writable_bytes(std::span(records_))));
  KERNELS_TRY(device_->Download(c_.get(), std::as_writable_bytes(std::span(results_))));
  for (std::uint64_t& word : results_) word ^= last_.mask;
  return Success();
}

std::optional<std::uint64_t> GemmRun::SilentSlot() const {
  for (std::uint64_t slot = 0; slot < records_.size(); ++slot) {
    if (records_[slot].token != Mix(last_.token + slot)) return slot;
  }
  return std::nullopt;
}

std::uint32_t GemmRun::TileOf(std::uint64_t slot) const {
  return GemmTile(last_.salt, slot, plan_.tiles());
}

std::span<const std::byte> GemmRun::Results(std::uint64_t slot) const {
  const std::size_t bytes = results_.size() * 8 / plan_.slots();
  return std::as_bytes(std::span(results_)).subspan(slot * bytes, bytes);
}

std::size_t GemmRun::ElementOf(std::uint32_t tile, std::size_t place) const {
  const std::size_t row = std::size_t{tile % plan_.tiles_down()} * plan_.tile + place / plan_.tile;
  const std::size_t column =
      std::size_t{tile / plan_.tiles_down()} * plan_.tile + place % plan_.tile;
  return row * plan_.shape.columns + column;
}

}  // namespace bimetal::kernels
