#include "core/queue/tree.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/model/saturate.h"

namespace bimetal::core::queue {
namespace {

// What is guaranteed and never lent.
std::int64_t Kept(const QuotaLine& line) {
  const std::int64_t guaranteed = std::max<std::int64_t>(0, line.guaranteed);
  const std::int64_t lent = std::max<std::int64_t>(0, line.lending_limit.value_or(guaranteed));
  return std::max<std::int64_t>(0, guaranteed - lent);
}

std::int64_t Left(std::int64_t limit, std::int64_t used) {
  return std::max<std::int64_t>(0, Saturate(static_cast<__int128>(limit) - used));
}

}  // namespace

QueueTree::QueueTree(const std::vector<Queue>& queues, std::vector<DeviceKind> kinds)
    : kinds_(std::move(kinds)) {
  std::map<QueueName, const Queue*> sorted;
  for (const Queue& queue : queues) sorted.emplace(queue.name, &queue);
  for (const auto& [name, queue] : sorted) {
    by_name_.emplace(name, static_cast<int>(nodes_.size()));
    Node node;
    node.queue = queue;
    for (const QuotaLine& quota : queue->quotas) {
      node.lines.push_back(Line{.quota = &quota, .used = 0});
      anyone_keeps_ = anyone_keeps_ || Kept(quota) > 0;
    }
    node.used_by_kind.assign(kinds_.size(), 0);
    for (const DeviceKind& kind : kinds_) {
      int of_class = -1, of_vendor = -1;
      for (std::size_t i = node.lines.size(); i-- > 0;) {
        const std::string& name_of_line = node.lines[i].quota->device_class;
        if (name_of_line == kind.device_class) of_class = static_cast<int>(i);
        if (name_of_line == VendorName(kind.vendor)) of_vendor = static_cast<int>(i);
      }
      node.line_of_kind.push_back(of_class >= 0 ? of_class : of_vendor);
    }
    nodes_.push_back(std::move(node));
  }
  FindProblems();
  Link();
}

// Follows each queue to the top; whoever never gets there is on a cycle or below one.
void QueueTree::FindProblems() {
  for (Node& node : nodes_) {
    std::set<QueueName> seen = {node.queue->name};
    std::string path = node.queue->name.value;
    const Queue* at = node.queue;
    while (!at->parent.value.empty()) {
      const auto parent = by_name_.find(at->parent);
      if (parent == by_name_.end()) {
        node.problem = "GPUQueue " + at->name.value + " names the parent " + at->parent.value +
                       ", which does not exist; create it or change spec.parentName";
        break;
      }
      at = nodes_[Index(parent->second)].queue;
      path += " > " + at->name.value;
      if (!seen.insert(at->name).second) {
        node.problem = "its parents go in a circle (" + path +
                       "); change spec.parentName of one of these GPUQueues";
        break;
      }
    }
  }
}

void QueueTree::Link() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.problem.empty() && !node.queue->parent.value.empty()) {
      node.parent = by_name_.at(node.queue->parent);
      nodes_[Index(node.parent)].children.push_back(static_cast<int>(i));
    } else {
      top_.push_back(static_cast<int>(i));
    }
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    int depth = 0;
    for (int at = static_cast<int>(i); at != kNoQueue; at = Parent(at)) ++depth;
    depth_ = std::max(depth_, depth);
  }
}

int QueueTree::Find(const QueueName& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? kNoQueue : at->second;
}

const std::vector<int>& QueueTree::Children(int queue) const {
  return queue == kNoQueue ? top_ : nodes_[Index(queue)].children;
}

int QueueTree::StoppedBy(int queue) const {
  for (int at = queue; at != kNoQueue; at = Parent(at)) {
    if (At(at).stop != StopPolicy::kNone) return at;
  }
  return kNoQueue;
}

std::optional<std::size_t> QueueTree::LineFor(int queue, std::size_t kind) const {
  const int line = nodes_[Index(queue)].line_of_kind[kind];
  if (line < 0) return std::nullopt;
  return static_cast<std::size_t>(line);
}

void QueueTree::UseHere(int queue, std::size_t kind, std::int64_t devices, std::int64_t jobs) {
  Node& node = nodes_[Index(queue)];
  node.used = SaturatingAdd(node.used, devices);
  node.jobs = SaturatingAdd(node.jobs, jobs);
  node.used_by_kind[kind] = SaturatingAdd(node.used_by_kind[kind], devices);
  if (const int line = node.line_of_kind[kind]; line >= 0) {
    auto& used = node.lines[Index(line)].used;
    used = SaturatingAdd(used, devices);
  }
}

void QueueTree::Use(int queue, std::size_t kind, std::int64_t devices, std::int64_t jobs) {
  for (int at = queue; at != kNoQueue; at = Parent(at)) UseHere(at, kind, devices, jobs);
}

std::int64_t QueueTree::UsedOfLine(int queue, std::size_t line) const {
  return nodes_[Index(queue)].lines[line].used;
}

std::int64_t QueueTree::UsedOfKind(int queue, std::size_t kind) const {
  return nodes_[Index(queue)].used_by_kind[kind];
}

std::optional<QuotaShortage> QueueTree::ShortageOf(int queue, std::size_t kind,
                                                   std::int64_t devices,
                                                   const FreeByKind& free) const {
  std::optional<QuotaShortage> worst;
  const auto consider = [&](QuotaObstacle obstacle, int at, const std::string& device_class,
                            std::int64_t limit, std::int64_t used, std::int64_t need) {
    const std::int64_t left = Left(limit, used);
    if (left >= need || (worst && worst->left <= left)) return;
    worst = QuotaShortage{.obstacle = obstacle,
                          .queue = at,
                          .device_class = device_class,
                          .limit = limit,
                          .left = left};
  };
  for (int at = queue; at != kNoQueue; at = Parent(at)) {
    const Node& node = nodes_[Index(at)];
    if (const auto line = LineFor(at, kind)) {
      const Line& one = node.lines[*line];
      if (one.quota->limit) {
        consider(QuotaObstacle::kLimit, at, one.quota->device_class, *one.quota->limit, one.used,
                 devices);
      }
    }
    if (node.queue->total_limit) {
      consider(QuotaObstacle::kTotalLimit, at, "", *node.queue->total_limit, node.used, devices);
    }
    if (node.queue->max_running_jobs) {
      consider(QuotaObstacle::kRunningJobs, at, "", *node.queue->max_running_jobs, node.jobs, 1);
    }
  }
  if (worst || !anyone_keeps_) return worst;
  return LendingShortage(queue, kind, devices, free);
}

std::optional<QuotaShortage> QueueTree::NeverMore(int queue, std::size_t kind,
                                                  std::int64_t devices) const {
  for (int at = queue; at != kNoQueue; at = Parent(at)) {
    const Node& node = nodes_[Index(at)];
    const auto shortage = [&](QuotaObstacle obstacle, std::int64_t limit, std::int64_t used,
                              const std::string& device_class) {
      return QuotaShortage{.obstacle = obstacle,
                           .queue = at,
                           .device_class = device_class,
                           .limit = limit,
                           .left = Left(limit, used)};
    };
    if (const auto line = LineFor(at, kind)) {
      const Line& one = node.lines[*line];
      if (one.quota->limit && *one.quota->limit < devices) {
        return shortage(QuotaObstacle::kLimit, *one.quota->limit, one.used,
                        one.quota->device_class);
      }
    }
    const auto& total = node.queue->total_limit;
    if (total && *total < devices) {
      return shortage(QuotaObstacle::kTotalLimit, *total, node.used, "");
    }
    const auto& per_job = node.queue->max_devices_per_job;
    if (per_job && *per_job < devices) return shortage(QuotaObstacle::kPerJob, *per_job, 0, "");
  }
  return std::nullopt;
}

bool QueueTree::IsGuaranteed(int queue, std::size_t kind, std::int64_t devices) const {
  for (int at = queue; at != kNoQueue; at = Parent(at)) {
    const auto line = LineFor(at, kind);
    if (!line) continue;
    const Line& one = nodes_[Index(at)].lines[*line];
    if (SaturatingAdd(one.used, devices) <= one.quota->guaranteed) return true;
  }
  return false;
}

// Of `device_class`, what the queue and all below it keep for themselves and do not use.
std::int64_t QueueTree::KeptFromOthers(int queue, const std::string& device_class) const {
  const Node& node = nodes_[Index(queue)];
  std::int64_t below = 0;
  for (const int child : node.children) {
    below = SaturatingAdd(below, KeptFromOthers(child, device_class));
  }
  for (const Line& line : node.lines) {
    if (line.quota->device_class != device_class) continue;
    below = std::max(below, Left(Kept(*line.quota), line.used));
  }
  return below;
}

bool QueueTree::WithinKept(int queue, std::size_t kind, std::int64_t devices) const {
  for (int at = queue; at != kNoQueue; at = Parent(at)) {
    const auto line = LineFor(at, kind);
    if (!line) continue;
    const Line& one = nodes_[Index(at)].lines[*line];
    if (SaturatingAdd(one.used, devices) <= Kept(*one.quota)) return true;
  }
  return false;
}

// After `devices` are given away, enough must be left for what others keep: of the class, and of
// the vendor for its own line and those of all its classes together.
std::optional<QuotaShortage> QueueTree::LendingShortage(int queue, std::size_t kind,
                                                        std::int64_t devices,
                                                        const FreeByKind& free) const {
  if (WithinKept(queue, kind, devices)) return std::nullopt;
  const DeviceKind& wanted = kinds_[kind];
  const std::string vendor(VendorName(wanted.vendor));
  std::set<std::string> classes = {vendor, wanted.device_class};
  std::int64_t free_of_class = 0, free_of_vendor = 0;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const std::int64_t here = std::max<std::int64_t>(0, free[i]);
    if (kinds_[i].vendor == wanted.vendor) {
      free_of_vendor = SaturatingAdd(free_of_vendor, here);
      classes.insert(kinds_[i].device_class);
    }
    if (kinds_[i].device_class == wanted.device_class) {
      free_of_class = SaturatingAdd(free_of_class, here);
    }
  }
  std::int64_t kept_of_class = 0, kept_of_vendor = 0;
  int below = kNoQueue;
  for (int at = queue;; at = Parent(at)) {
    for (const int child : Children(at)) {
      if (child == below) continue;
      for (const std::string& one : classes) {
        const std::int64_t kept = KeptFromOthers(child, one);
        kept_of_vendor = SaturatingAdd(kept_of_vendor, kept);
        if (one == wanted.device_class) kept_of_class = SaturatingAdd(kept_of_class, kept);
      }
    }
    if (at == kNoQueue) break;
    below = at;
  }
  // What a vendor's line keeps may be of any class of the vendor.
  std::int64_t left = kept_of_vendor > 0 ? Left(free_of_vendor, kept_of_vendor) : devices;
  if (kept_of_class > 0 && wanted.device_class != vendor) {
    left = std::min(left, Left(free_of_class, kept_of_class));
  }
  if (left >= devices) return std::nullopt;
  return QuotaShortage{.obstacle = QuotaObstacle::kLending,
                       .queue = queue,
                       .device_class = wanted.device_class,
                       .limit = 0,
                       .left = left};
}

}  // namespace bimetal::core::queue
