// What a board says about itself, for the reasons that jobs are shown.
#include <algorithm>

#include "core/model/saturate.h"
#include "core/placement/board.h"
#include "core/placement/search.h"
#include "core/placement/shape.h"

namespace bimetal::core::placement {

bool Board::HasDeviceFor(const Variant& variant) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    const Node& node = *(*rooms_)[slot.room].node;
    const auto found = node.devices.find(vendor_);
    if (found == node.devices.end() || !MayProve(found->second, variant)) return false;
    const auto& devices = found->second.devices;
    return std::any_of(devices.begin(), devices.end(),
                       [&](const Device& device) { return Matches(device, variant); });
  });
}

std::int64_t Board::FreeFor(const Variant& variant) {
  const Mask& match = MatchMask(variant);
  std::int64_t free = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Node& node = *(*rooms_)[slots_[i].room].node;
    if (match[i] && node.ready && !node.cordoned) free = SaturatingAdd(free, slots_[i].free);
  }
  return free;
}

Board::Size Board::SizeFor(const Variant& variant) {
  const Mask& match = MatchMask(variant);
  Size size;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!match[i]) continue;
    size.total = SaturatingAdd(size.total, slots_[i].usable);
    size.largest_node = std::max(size.largest_node, slots_[i].usable);
  }
  return size;
}

std::string Board::CausesOnFreeNodes(const Job& job, const Variant& variant) {
  std::int64_t cordoned = 0, not_ready = 0, barred = 0, cpu = 0, memory = 0, slots = 0;
  const Mask& match = MatchMask(variant);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Room& room = (*rooms_)[slots_[i].room];
    if (!match[i] || slots_[i].free < variant.devices_per_pod) continue;
    const Resources& capacity = room.node->allocatable;
    // The first cause of each node that holds for every role of the job.
    const auto all_lack = [&](auto amount_of) {
      return std::all_of(job.roles.begin(), job.roles.end(), [&](const Role& role) {
        return !Fits(amount_of(role.requests), capacity, room.used);
      });
    };
    if (!room.node->ready) {
      ++not_ready;
    } else if (room.node->cordoned) {
      ++cordoned;
    } else if (std::none_of(job.roles.begin(), job.roles.end(),
                            [&](const Role& role) { return Allows(*room.node, role); })) {
      ++barred;
    } else if (all_lack([](const Resources& r) { return Resources{.cpu_milli = r.cpu_milli}; })) {
      ++cpu;
    } else if (all_lack(
                   [](const Resources& r) { return Resources{.memory_bytes = r.memory_bytes}; })) {
      ++memory;
    } else if (all_lack([](const Resources& r) { return Resources{.pods = r.pods}; })) {
      ++slots;
    }
  }
  std::string text;
  const auto add = [&text](std::int64_t count, std::string_view cause) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(cause);
  };
  add(not_ready, "not ready");
  add(cordoned, "cordoned or held");
  add(barred, "with taints or labels that rule the job out, or avoided after a failure");
  add(cpu, "short of CPU");
  add(memory, "short of memory");
  add(slots, "without a free pod slot");
  return text;
}

std::optional<Board::TopologyGap> Board::GapFor(const Job& job, const Variant& variant) {
  std::optional<TopologyGap> worst;
  const Search search(this, job, variant);
  for (const Search::Part& part : search.parts()) {
    if (!part.mode || part.mode == TopologyMode::kPreferred) continue;
    TopologyGap gap;
    gap.level = topology_->NameOf(part.level);
    gap.spread = part.mode == TopologyMode::kSpread;
    gap.unlabelled = static_cast<std::int64_t>(
        topology_->NodesOf(part.level, topology_->DomainsIn(part.level)).size());
    for (const auto& role : part.roles) {
      gap.roles += (gap.roles.empty() ? "" : " and ") + job.roles[role.role].name;
      gap.need = SaturatingAdd(gap.need, role.replicas);
    }
    const auto& role = part.roles.front();
    const auto domains = search.DomainsFor(part.level, role);
    const auto count = static_cast<std::int64_t>(domains.size());
    const std::int64_t share = count == 0 ? 0 : (role.replicas + count - 1) / count;
    std::int64_t most = 0;
    for (const std::size_t domain : domains) {
      std::int64_t fit = 0;
      for (const auto& one : part.roles) {
        fit += search.FitIn(part.level, domain, one, gap.spread ? share : one.replicas);
      }
      if (gap.best.empty() || fit > most) {
        gap.best = topology_->DomainName(part.level, domain);
        most = fit;
      }
      gap.room = gap.spread ? gap.room + fit : most;
    }
    gap.share = share;
    if (!worst || gap.need - gap.room > worst->need - worst->room) worst = std::move(gap);
  }
  return worst;
}

}  // namespace bimetal::core::placement
