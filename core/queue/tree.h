#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/fleet.h"

namespace bimetal::core::queue {

// A sort of devices as quotas see it.
struct DeviceKind {
  Vendor vendor = Vendor::kNvidia;
  std::string device_class;
  auto operator<=>(const DeviceKind&) const = default;
};

inline constexpr int kNoQueue = -1;

// Why a queue may not have more.
enum class QuotaObstacle {
  kLimit,        // of a line
  kTotalLimit,   // of all classes together
  kRunningJobs,  // maxRunningJobs
  kPerJob,       // perJob.maxDevices
  kLending,      // what is left is guaranteed to others and not lent
};

struct QuotaShortage {
  QuotaObstacle obstacle = QuotaObstacle::kLimit;
  int queue = kNoQueue;      // whose quota it is: the job's queue or one above it
  std::string device_class;  // of the line; empty with kTotalLimit, kRunningJobs, kPerJob
  std::int64_t limit = 0;    // as the queue says it
  std::int64_t left = 0;     // of it, never negative
};

// Devices that nobody holds, by kind: index as in the tree's kinds.
using FreeByKind = std::vector<std::int64_t>;

// The queues as a tree, with what each and everything below it uses now. Queues are numbered in the
// order of their names. Holds a pointer to the queues. Loop thread only.
class QueueTree {
 public:
  // Of two queues of one name the first counts. `kinds` are distinct.
  QueueTree(const std::vector<Queue>& queues, std::vector<DeviceKind> kinds);

  std::size_t size() const { return nodes_.size(); }
  const std::vector<DeviceKind>& kinds() const { return kinds_; }
  int Find(const QueueName& name) const;  // kNoQueue where there is none
  const Queue& At(int queue) const { return *nodes_[Index(queue)].queue; }
  int Parent(int queue) const { return nodes_[Index(queue)].parent; }
  // Of kNoQueue: those at the top.
  const std::vector<int>& Children(int queue) const;
  // Why the queue takes no part, with the remedy: an unknown parent, a cycle. Empty: it does.
  const std::string& ProblemOf(int queue) const { return nodes_[Index(queue)].problem; }
  // The queue itself or one above it whose stopPolicy is not None; kNoQueue: none.
  int StoppedBy(int queue) const;
  // The number of queues from the top down to the deepest.
  int depth() const { return depth_; }

  // Index of the line of `queue` on which devices of `kind` count; nullopt: none.
  std::optional<std::size_t> LineFor(int queue, std::size_t kind) const;
  // Adds to what the queue and all above it use. Negative amounts take away.
  void Use(int queue, std::size_t kind, std::int64_t devices, std::int64_t jobs);
  // The same for this one queue alone.
  void UseHere(int queue, std::size_t kind, std::int64_t devices, std::int64_t jobs);

  std::int64_t UsedOfLine(int queue, std::size_t line) const;
  std::int64_t UsedOfKind(int queue, std::size_t kind) const;
  std::int64_t UsedInAll(int queue) const { return nodes_[Index(queue)].used; }
  std::int64_t JobsOf(int queue) const { return nodes_[Index(queue)].jobs; }

  // True where a lending limit keeps devices back, so that ShortageOf asks what is free.
  bool asks_for_free() const { return anyone_keeps_; }
  // What keeps `devices` more of `kind` from the queue; of several the one that leaves least.
  std::optional<QuotaShortage> ShortageOf(int queue, std::size_t kind, std::int64_t devices,
                                          const FreeByKind& free) const;
  // A limit of the queue or of one above it that is below `devices` in itself.
  std::optional<QuotaShortage> NeverMore(int queue, std::size_t kind, std::int64_t devices) const;
  // True where `devices` more stay within what is guaranteed to the queue or to one above it.
  bool IsGuaranteed(int queue, std::size_t kind, std::int64_t devices) const;

 private:
  struct Line {
    const QuotaLine* quota = nullptr;
    std::int64_t used = 0;
  };
  struct Node {
    const Queue* queue = nullptr;
    int parent = kNoQueue;
    std::vector<int> children;
    std::string problem;
    std::vector<Line> lines;
    std::vector<int> line_of_kind;  // -1: none
    std::vector<std::int64_t> used_by_kind;
    std::int64_t used = 0, jobs = 0;
  };

  static std::size_t Index(int queue) { return static_cast<std::size_t>(queue); }
  void Link();
  void FindProblems();
  std::int64_t KeptFromOthers(int queue, const std::string& device_class) const;
  bool WithinKept(int queue, std::size_t kind, std::int64_t devices) const;
  std::optional<QuotaShortage> LendingShortage(int queue, std::size_t kind, std::int64_t devices,
                                               const FreeByKind& free) const;

  std::vector<DeviceKind> kinds_;
  std::vector<Node> nodes_;
  std::vector<int> top_;
  std::map<QueueName, int> by_name_;
  int depth_ = 0;
  bool anyone_keeps_ = false;  // a lending limit is below what is guaranteed
};

}  // namespace bimetal::core::queue
