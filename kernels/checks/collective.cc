#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "kernels/checks/modules.h"
#include "kernels/checks/rate_common.h"
#include "kernels/checks/rates.h"

namespace bimetal::kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kRingBytes = 1ull << 30;
constexpr std::uint64_t kModelledBytes = 64ull << 10;

// All devices of the ring, each with its words and room for one chunk of its neighbour.
class Ring {
 public:
  Ring(std::vector<Device*> devices, const CheckRequest& request)
      : devices_(std::move(devices)), request_(request) {}

  Done Prepare() {
    std::uint64_t bytes = kRingBytes;
    for (Device* device : devices_) {
      KERNELS_TRY_ASSIGN(const std::uint64_t room, RateBytes(*device, request_, kRingBytes, 2));
      bytes = std::min(bytes, room);
    }
    // Whole words in each of n chunks.
    chunk_ = std::max<std::uint64_t>(1, bytes / sizeof(std::uint64_t) / devices_.size());
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      Device& next = *devices_[(i + 1) % devices_.size()];
      KERNELS_TRY_ASSIGN(const bool direct, devices_[i]->CanAccessPeer(next));
      if (direct) KERNELS_TRY(devices_[i]->EnablePeer(next));
      if (!direct) ++detours_;
      KERNELS_TRY_ASSIGN(DeviceBuffer words, DeviceBuffer::Make(*devices_[i], bytes_total()));
      KERNELS_TRY_ASSIGN(DeviceBuffer spare,
                         DeviceBuffer::Make(*devices_[i], chunk_ * sizeof(std::uint64_t)));
      words_.push_back(std::move(words));
      spare_.push_back(std::move(spare));
    }
    return Success();
  }

  Done Fill() {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      KERNELS_TRY(LaunchRing(i, "bm_ring_fill", words_[i].address<std::uint64_t>(), nullptr,
                             chunk_ * devices_.size(), nullptr));
    }
    return WaitAll();
  }

  // Seconds that one all-reduce took. Rank i sends chunk (i - step) on, whose owner then adds it;
  // after n - 1 steps rank i holds the sum of chunk i + 1, which goes around once more.
  Outcome<double> Reduce() {
    const std::size_t n = devices_.size();
    const auto begin = Clock::now();
    for (std::size_t step = 0; step + 1 < n; ++step) {
      for (std::size_t i = 0; i < n; ++i) {
        KERNELS_TRY(Send(i, (i + n - step % n) % n, true));
      }
      KERNELS_TRY(WaitAll());
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t chunk = (i + n - 1 + n - step % n) % n;
        KERNELS_TRY(LaunchRing(i, "bm_ring_add", Chunk(i, chunk),
                               spare_[i].address<std::uint64_t>(), chunk_, nullptr));
      }
      KERNELS_TRY(WaitAll());
    }
    for (std::size_t step = 0; step + 1 < n; ++step) {
      for (std::size_t i = 0; i < n; ++i) {
        KERNELS_TRY(Send(i, (i + 1 + n - step % n) % n, false));
      }
      KERNELS_TRY(WaitAll());
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  Outcome<RateTally> Verify(std::size_t i) {
    const LaunchShape shape = FullShape(devices_[i]->info());
    KERNELS_TRY_ASSIGN(const DeviceBuffer records,
                       DeviceBuffer::Make(*devices_[i], shape.total() * sizeof(RateRecord)));
    KERNELS_TRY(LaunchRing(i, "bm_ring_verify", words_[i].address<std::uint64_t>(), nullptr,
                           chunk_ * devices_.size(), records.address<RateRecord>()));
    KERNELS_TRY(devices_[i]->Synchronize(request_.deadline));
    return ReadRecords(*devices_[i], records, shape, Token(i));
  }

  std::uint64_t bytes_total() const { return chunk_ * devices_.size() * sizeof(std::uint64_t); }
  std::size_t detours() const { return detours_; }

 private:
  std::uint64_t Token(std::size_t i) const { return Mix(request_.seed ^ Mix(i + 77)); }
  std::uint64_t* Chunk(std::size_t i, std::size_t chunk) const {
    return words_[i].address<std::uint64_t>() + chunk * chunk_;
  }
  Buffer ChunkBuffer(std::size_t i, std::size_t chunk) const {
    const std::uint64_t bytes = chunk_ * sizeof(std::uint64_t);
    const Buffer& whole = words_[i].get();
    return {whole.address + chunk * bytes, bytes, whole.offset + chunk * bytes};
  }
  // Rank i's chunk to its next rank: beside its words to be added, or in their place.
  Done Send(std::size_t i, std::size_t chunk, bool to_spare) {
    const std::size_t next = (i + 1) % devices_.size();
    return devices_[i]->QueueCopyPeer(*devices_[next],
                                      to_spare ? spare_[next].get() : ChunkBuffer(next, chunk),
                                      ChunkBuffer(i, chunk), chunk_ * sizeof(std::uint64_t));
  }
  Done LaunchRing(std::size_t i, std::string_view kernel, std::uint64_t* words,
                  const std::uint64_t* other, std::uint64_t count, RateRecord* records) {
    RingArgs args = {};
    args.words = words;
    args.other = other;
    args.count = count;
    args.seed = request_.seed;
    args.rank = i;
    args.ranks = devices_.size();
    args.token = Token(i);
    args.records = records;
    return LaunchWith(*devices_[i], RatesModule(), kernel, FullShape(devices_[i]->info()), args);
  }
  Done WaitAll() {
    for (Device* device : devices_) KERNELS_TRY(device->Synchronize(request_.deadline));
    return Success();
  }

  std::vector<Device*> devices_;
  CheckRequest request_;
  std::vector<DeviceBuffer> words_;
  std::vector<DeviceBuffer> spare_;
  std::uint64_t chunk_ = 0;  // words
  std::size_t detours_ = 0;
};

struct Measured {
  std::vector<double> samples;  // GB/s of bus bandwidth
  std::vector<RateTally> tallies;
  std::uint64_t bytes = 0;
  std::size_t detours = 0;
};

Outcome<Measured> Measure(const std::vector<Device*>& devices, const CheckRequest& request) {
  Ring ring(devices, request);
  KERNELS_TRY(ring.Prepare());
  Measured out;
  out.bytes = ring.bytes_total();
  out.detours = ring.detours();
  const auto n = static_cast<double>(devices.size());
  std::vector<double> claims;
  for (Device* device : devices) {
    // A ring is as fast as its slowest member.
    const auto claimed = device->ModelledRates("collective", request.seed, kRateSamples);
    if (!claimed) break;
    if (claims.empty()) claims = *claimed;
    for (std::size_t i = 0; i < claims.size(); ++i) claims[i] = std::min(claims[i], (*claimed)[i]);
  }
  const std::size_t runs = claims.empty() ? kRateWarmUp + kRateSamples : 1;
  for (std::size_t run = 0; run < runs; ++run) {
    KERNELS_TRY(ring.Fill());
    KERNELS_TRY_ASSIGN(const double seconds, ring.Reduce());
    if (run < kRateWarmUp && claims.empty()) continue;
    out.samples.push_back(2 * (n - 1) / n * static_cast<double>(out.bytes) /
                          std::max(seconds, 1e-9) / 1e9);
  }
  if (!claims.empty()) out.samples = claims;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    KERNELS_TRY_ASSIGN(const RateTally tally, ring.Verify(i));
    out.tallies.push_back(tally);
  }
  return out;
}

// Which members' hops deliver wrong data: each sends known data to its next, which compares it.
// `suspects` failed by themselves.
Outcome<std::vector<bool>> BadHops(const std::vector<Device*>& devices,
                                   const std::set<const Device*>& suspects,
                                   const CheckRequest& request) {
  std::vector<bool> is_suspect;
  for (const Device* device : devices) is_suspect.push_back(suspects.contains(device));
  std::vector<std::pair<std::size_t, std::size_t>> bad;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t next = (i + 1) % devices.size();
    KERNELS_TRY_ASSIGN(const std::uint64_t bytes,
                       RateBytes(*devices[i], request, kModelledBytes, 2));
    KERNELS_TRY_ASSIGN(const DeviceBuffer source, DeviceBuffer::Make(*devices[i], bytes));
    KERNELS_TRY_ASSIGN(const DeviceBuffer target, DeviceBuffer::Make(*devices[next], bytes));
    KERNELS_TRY(FillRate(*devices[i], request, request.seed + i, source.address<RatePair>(),
                         nullptr, nullptr, bytes));
    KERNELS_TRY(devices[i]->QueueCopyPeer(*devices[next], target.get(), source.get(), bytes));
    KERNELS_TRY(devices[i]->Synchronize(request.deadline));
    KERNELS_TRY_ASSIGN(const RateTally tally,
                       VerifyRate(*devices[next], request, request.seed + i, kRateCopy,
                                  target.address<RatePair>(), bytes));
    if (!WrongText(tally).empty()) bad.emplace_back(i, next);
  }
  // A fault that no hop meets now is that of a device which failed by itself.
  return bad.empty() ? is_suspect : Blame(is_suspect, std::move(bad));
}

bool AllSound(const Measured& measured) {
  return std::all_of(measured.tallies.begin(), measured.tallies.end(), [](const RateTally& tally) {
    return !tally.silent_thread && tally.mismatches == 0;
  });
}

// What each member of the ring gets. A member whose hops are bad fails, and the ring closes without
// it: its neighbours are not to blame.
std::vector<CheckResult> JudgeRing(const std::vector<Device*>& devices,
                                   const std::set<const Device*>& suspects,
                                   const CheckRequest& request) {
  std::vector<CheckResult> results(devices.size());
  if (devices.size() < 2) {
    for (CheckResult& result : results) {
      result.evidence = "no other device of the node could take part";
    }
    return results;
  }
  Outcome<Measured> measured = Measure(devices, request);
  if (!measured.ok()) {
    // Whom the error blames is in its text; the ring stands still for all.
    for (CheckResult& result : results) result.evidence = measured.error().message;
    return results;
  }
  const std::string what = "all-reduce of " + std::to_string(measured.value().bytes) +
                           " bytes over " + std::to_string(devices.size()) + " devices";
  if (!AllSound(measured.value())) {
    Outcome<std::vector<bool>> bad = BadHops(devices, suspects, request);
    const bool located =
        bad.ok() && std::find(bad.value().begin(), bad.value().end(), true) != bad.value().end();
    std::vector<Device*> rest;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (located && !bad.value()[i]) rest.push_back(devices[i]);
      results[i].verdict = VerdictKind::kFail;
      results[i].evidence =
          "the sum is wrong from word " +
          std::to_string(measured.value().tallies[i].first.value_or(RateRecord{}).first) + " on" +
          (located ? "; copies of this device deliver wrong data"
                   : "; no single device could be blamed") +
          "; " + what;
    }
    if (!located || rest.size() == devices.size()) return results;
    std::vector<CheckResult> others = JudgeRing(rest, suspects, request);
    std::size_t next = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!bad.value()[i]) results[i] = std::move(others[next++]);
    }
    return results;
  }
  const std::string detours =
      measured.value().detours == 0
          ? ""
          : ", " + std::to_string(measured.value().detours) + " hops without a direct path";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    results[i] = RateResultOf(measured.value().tallies[i], measured.value().samples, "GB/s",
                              what + detours, devices[i]->Sample());
  }
  return results;
}

}  // namespace

std::vector<CheckResult> RunCollective(std::span<const NodeDevice> devices,
                                       const CheckRequest& request) {
  std::vector<Device*> usable;
  std::set<const Device*> suspects;
  for (const NodeDevice& one : devices) {
    if (one.device == nullptr) continue;
    usable.push_back(one.device);
    if (one.failed) suspects.insert(one.device);
  }
  std::vector<CheckResult> ring = JudgeRing(usable, suspects, request);
  std::vector<CheckResult> results;
  std::size_t rank = 0;
  for (const NodeDevice& one : devices) {
    results.push_back(one.device == nullptr ? FromError(one.error) : std::move(ring[rank++]));
  }
  return results;
}

}  // namespace bimetal::kernels
