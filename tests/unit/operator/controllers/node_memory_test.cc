#include "operator/controllers/node_memory.h"

#include <random>

#include <gtest/gtest.h>

namespace bimetal::test {
namespace {

using core::admission::Memory;

constexpr int kSeeds = 300;

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Memory Make() {
    Memory out;
    for (int i = Up(4); i > 0; --i) {
      auto& record = out.records[DeviceId{"d" + std::to_string(i)}];
      record = {.fingerprint = Text(),
                .boot_id = Text(),
                .passed_at = Time(),
                .failed_check = Text(),
                .failed_evidence = Text(),
                .cordoned = Text(),
                .due = Text()};
    }
    out.path = {.fingerprint = Text(),
                .boot_id = Text(),
                .failures = Up(3),
                .reason = Text(),
                .next = Time()};
    out.inconclusive_runs = Up(4);
    out.inconclusive_reason = Text();
    out.next_run = Time();
    out.revalidated = Text();
    out.last_run = Text();
    out.level = Text();
    for (int i = Up(3); i > 0; --i) out.capabilities.insert("c" + std::to_string(i));
    for (int i = Up(3); i > 0; --i) out.handled_events.insert("event/" + std::to_string(i));
    out.note = Text();
    return out;
  }

 private:
  int Up(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  std::string Text() { return Up(3) == 0 ? "" : "text " + std::to_string(Up(1000)) + " \"é\n"; }
  std::optional<TimePoint> Time() {
    if (Up(2) == 0) return std::nullopt;
    return TimePoint{1'800'000'000'000 + Up(1'000'000) * 1000LL};
  }

  std::mt19937_64 random_;
};

TEST(NodeMemoryTest, WhatIsStoredInTheStatusComesBackAsItWas) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Memory memory = Maker(static_cast<std::uint64_t>(seed)).Make();
    api::VendorStatus status;
    op::StoreMemory(memory, &status);
    EXPECT_EQ(op::LoadMemory(status), memory) << "seed " << seed;
  }
}

TEST(NodeMemoryTest, AFailureThatTheFirstReleaseStoredStaysOne) {
  api::VendorStatus status;
  status.add_failed_devices("d1");
  status.set_failed_evidence("memory-pattern on d1: bit 3 stuck");
  const Memory memory = op::LoadMemory(status);
  EXPECT_FALSE(memory.records.at(DeviceId{"d1"}).failed_check.empty());
  EXPECT_EQ(memory.records.at(DeviceId{"d1"}).failed_evidence, status.failed_evidence());
}

}  // namespace
}  // namespace bimetal::test
