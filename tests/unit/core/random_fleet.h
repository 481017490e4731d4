#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/core/builders.h"

// Random but repeatable fleets and jobs for property tests: small enough to be tight, odd enough
// to have shut, cordoned, tainted and mixed nodes.
namespace bimetal::core::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Uniform enough, and the same on every platform.
  int Up(int below) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(below)); }
  bool OneIn(int n) { return Up(n) == 0; }
  template <class T>
  void Shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(Up(static_cast<int>(i)))]);
    }
  }
  Vendor AnyVendor() { return OneIn(2) ? Vendor::kAmd : Vendor::kNvidia; }

 private:
  std::mt19937_64 engine_;
};

inline Node RandomNode(Random& random, int number) {
  NodeBuilder node("n" + std::to_string(number));
  for (const Vendor vendor : kVendors) {
    if (random.OneIn(2)) continue;
    const std::string pool = std::string(VendorName(vendor)) + (random.OneIn(3) ? "-b" : "");
    node.Gpus(vendor, 1 + random.Up(8), pool, random.OneIn(3) ? "Y" : "X");
    if (random.OneIn(5)) node.Gpus(vendor, 1, pool, "Y");
    if (random.OneIn(4)) node.Shut(vendor, static_cast<std::size_t>(1 + random.Up(4)));
    if (random.OneIn(8)) node.Offered(vendor, random.Up(4));
    if (random.OneIn(12)) node.Offered(vendor, {});
    if (random.OneIn(6)) node.UnknownMemory(vendor);
  }
  if (random.OneIn(6)) node.WithTaint("dedicated");
  if (random.OneIn(10)) node.Cordoned();
  if (random.OneIn(10)) node.NotReady();
  if (random.OneIn(3)) node.Label("disk", "fast");
  if (random.OneIn(4)) node.Cpu(1000 * (1 + random.Up(16)));
  if (random.OneIn(6)) node.PodSlots(random.Up(6));
  return node;
}

inline Job RandomJob(Random& random, int number) {
  JobBuilder job("j" + std::to_string(number));
  job.Created(random.Up(5)).Priority(random.Up(3));
  job.Queue(random.OneIn(3) ? "strict" : random.OneIn(12) ? "nowhere" : "backfill");
  const Vendor first = random.AnyVendor();
  const int variants = 1 + random.Up(2);
  for (int i = 0; i < variants; ++i) {
    job.On(i == 0                  ? first
           : first == Vendor::kAmd ? Vendor::kNvidia
                                   : Vendor::kAmd,
           1 + random.Up(random.OneIn(6) ? 9 : 3));
    if (random.OneIn(4)) job.Models({"X"});
    if (random.OneIn(5)) job.MinMemory(kGi);
  }
  const int roles = 1 + (random.OneIn(3) ? 1 + random.Up(2) : 0);
  for (int i = 0; i < roles; ++i) {
    job.Pods(1 + random.Up(random.OneIn(5) ? 20 : 4), 500 * random.Up(8), "r" + std::to_string(i));
    if (random.OneIn(3)) job.Tolerating("dedicated");
    if (random.OneIn(5)) job.Selecting("disk", "fast");
  }
  return job;
}

inline Pod RandomPod(Random& random, int number, int nodes) {
  const std::string node =
      random.OneIn(10) ? std::string() : "n" + std::to_string(random.Up(std::max(1, nodes)));
  return PodOn("p" + std::to_string(number), node, random.AnyVendor(), random.Up(4),
               250 * random.Up(8));
}

}  // namespace bimetal::core::testing
