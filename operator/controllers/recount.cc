#include "operator/controllers/recount.h"

#include <cstdlib>

#include "core/base/log.h"
#include "core/placement/books.h"

namespace bimetal::op {
namespace {

constexpr Millis kPeriod = Minutes(1);
constexpr Millis kSecondLook = Seconds(5);

}  // namespace

std::int64_t BooksDifference(const std::vector<core::Pod>& ours,
                             const std::vector<core::Pod>& theirs) {
  const auto a = core::placement::MakeBooks(ours);
  const auto b = core::placement::MakeBooks(theirs);
  std::int64_t sum = 0;
  for (const auto vendor : core::kVendors) {
    for (const auto& [node, use] : a)
      sum += std::abs(core::placement::HeldOn(a, node, vendor).v -
                      core::placement::HeldOn(b, node, vendor).v);
    for (const auto& [node, use] : b) {
      if (!a.contains(node)) sum += std::abs(core::placement::HeldOn(b, node, vendor).v);
    }
  }
  return sum;
}

Recount::Recount(const Clock& clock, Loop& loop, Store& store, const SchedulingCycle& cycle,
                 WriteSink& lists)
    : clock_(clock),
      loop_(loop),
      store_(store),
      cycle_(cycle),
      lists_(lists),
      due_(clock.Monotonic() + kPeriod) {}

void Recount::Tick() {
  if (in_flight_ || clock_.Monotonic() < due_) return;
  due_ = clock_.Monotonic() + kPeriod;
  Look(false);
}

void Recount::Look(bool again) {
  in_flight_ = true;
  auto pods = std::make_shared<std::vector<api::Pod>>();
  Write list{"list", "pods", "", "", "", {}, {}};
  list.run = [pods](kube::Client& client) -> Status {
    BIMETAL_TRY_ASSIGN(auto all, client.ListAll<api::Pod>());
    *pods = std::move(all.items);
    return {};
  };
  list.done = [this, pods, again](const Status& status) {
    in_flight_ = false;
    if (status)
      Compare(*pods, again);  // else: tried again in a minute, the watches complain anyway
  };
  lists_.Submit(std::move(list));
}

void Recount::Compare(const std::vector<api::Pod>& pods, bool again) {
  std::vector<core::Pod> ours = cycle_.AssumedPods(), theirs;
  for (const auto& [key, pod] : store_.pods) {
    if (!pod.ended) ours.push_back(pod.holds);
  }
  for (const auto& pod : pods) {
    const PodRecord record = MakePodRecord(pod, store_.resources);
    if (!record.ended) theirs.push_back(record.holds);
  }
  const std::int64_t difference = BooksDifference(ours, theirs);
  if (difference != 0 && !again) {
    in_flight_ = true;
    loop_.At(clock_.Monotonic() + kSecondLook, [this] { Look(true); });
    return;
  }
  if (difference != 0) {
    Log(LogLevel::kError, "the books differ from a recount",
        {{"thousandths_of_a_device", difference}});
  }
  difference_milli_ = difference;
}

}  // namespace bimetal::op
