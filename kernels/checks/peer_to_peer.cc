#include <algorithm>
#include <string>
#include <utility>

#include "kernels/checks/rate_common.h"
#include "kernels/checks/rates.h"

namespace bimetal::kernels {
namespace {

constexpr std::uint64_t kPeerBytes = 64ull << 20;
constexpr std::size_t kAllPairs = 16;    // devices up to which every pair is tried
constexpr std::size_t kNamedPeers = 16;  // in the evidence

struct Pair {
  std::size_t from;
  std::size_t to;
};

// Every ordered pair, or each device's neighbours on both sides where there are many.
std::vector<Pair> PairsOf(const std::vector<std::size_t>& usable) {
  const std::size_t n = usable.size();
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t distance = (j + n - i) % n;
      if (distance == 0) continue;
      if (n <= kAllPairs || distance == 1 || distance == n - 1) {
        pairs.push_back({usable[i], usable[j]});
      }
    }
  }
  return pairs;
}

// What one pair showed.
struct PairResult {
  std::vector<double> samples;
  RateTally tally;
  bool direct = false;
};

// A pair slower than this share of the node's fastest is slow because of one of its ends.
constexpr double kSlowShare = 0.7;

Outcome<PairResult> TryPair(Device& from, Device& to, const CheckRequest& request,
                            std::uint64_t seed) {
  PairResult result;
  KERNELS_TRY_ASSIGN(const std::uint64_t bytes, RateBytes(from, request, kPeerBytes, 2));
  KERNELS_TRY_ASSIGN(const std::uint64_t room, RateBytes(to, request, kPeerBytes, 2));
  const std::uint64_t size = std::min(bytes, room);
  KERNELS_TRY_ASSIGN(result.direct, from.CanAccessPeer(to));
  if (result.direct) KERNELS_TRY(from.EnablePeer(to));
  KERNELS_TRY_ASSIGN(const DeviceBuffer source, DeviceBuffer::Make(from, size));
  KERNELS_TRY_ASSIGN(const DeviceBuffer target, DeviceBuffer::Make(to, size));
  KERNELS_TRY(FillRate(from, request, seed, source.address<RatePair>(), nullptr, nullptr, size));
  KERNELS_TRY(FillRate(to, request, seed, nullptr, nullptr, target.address<RatePair>(), size));
  const auto queue = [&] { return from.QueueCopyPeer(to, target.get(), source.get(), size); };
  if (auto claimed = from.ModelledRates("peer-to-peer", seed, kRateSamples)) {
    // A path is as fast as its slower end.
    const auto other = to.ModelledRates("peer-to-peer", seed, kRateSamples);
    for (std::size_t i = 0; other && i < claimed->size(); ++i) {
      (*claimed)[i] = std::min((*claimed)[i], (*other)[i]);
    }
    KERNELS_TRY(queue());
    KERNELS_TRY(from.Synchronize(request.deadline));
    result.samples = std::move(*claimed);
  } else {
    KERNELS_TRY_ASSIGN(result.samples, TimeEach(from, request.deadline, queue));
    for (double& sample : result.samples) sample = static_cast<double>(size) / sample;
  }
  KERNELS_TRY_ASSIGN(result.tally,
                     VerifyRate(to, request, seed, kRateCopy, target.address<RatePair>(), size));
  return result;
}

struct Tried {
  Pair pair;
  Outcome<PairResult> result;
  double p5 = 0;
};

bool IsSound(const Tried& tried) {
  return tried.result.ok() && WrongText(tried.result.value().tally).empty();
}

// Who is to blame for pairs that `is_bad`.
template <class Predicate>
std::vector<bool> BlameFor(std::span<const NodeDevice> devices, const std::vector<Tried>& all,
                           Predicate is_bad) {
  std::vector<bool> suspects;
  for (const NodeDevice& device : devices) suspects.push_back(device.failed);
  std::vector<std::pair<std::size_t, std::size_t>> bad;
  for (const Tried& tried : all) {
    if (is_bad(tried)) bad.emplace_back(tried.pair.from, tried.pair.to);
  }
  return Blame(suspects, std::move(bad));
}

double FastestPair(const std::vector<Tried>& all) {
  double fastest = 0;
  for (const Tried& tried : all) fastest = std::max(fastest, tried.p5);
  return fastest;
}

// Why one pair is not sound.
std::string Complaint(const Tried& tried, std::span<const NodeDevice> devices) {
  const std::string pair = "copy from " + devices[tried.pair.from].info.id + " to " +
                           devices[tried.pair.to].info.id + ": ";
  return pair +
         (tried.result.ok() ? WrongText(tried.result.value().tally) : tried.result.error().message);
}

// What the sound pairs of one device come to. Pairs that are slow by another's fault do not count
// against it.
CheckResult RateOf(std::size_t device, std::span<const NodeDevice> devices,
                   const std::vector<Tried>& all, const std::vector<bool>& slow) {
  const Tried* slowest = nullptr;
  std::string text;
  std::size_t named = 0;
  std::size_t unnamed = 0;
  std::size_t detours = 0;
  std::size_t excused = 0;
  for (const Tried& tried : all) {
    const auto [from, to] = tried.pair;
    if ((from != device && to != device) || !IsSound(tried)) continue;
    if (from == device && !tried.result.value().direct) ++detours;
    if (from == device && named < kNamedPeers) {
      text += (named++ == 0 ? " " : ", ") + devices[to].info.id + " " + Decimal(tried.p5, 1);
    } else if (from == device) {
      ++unnamed;
    }
    if (slow[from == device ? to : from] && !slow[device]) {
      ++excused;
    } else if (slowest == nullptr || tried.p5 < slowest->p5) {
      slowest = &tried;
    }
  }
  if (slowest == nullptr) {
    CheckResult none;
    none.evidence = "no sound pair to measure with";
    return none;
  }
  text = "p5 to" + text;
  if (unnamed > 0) text += " and " + std::to_string(unnamed) + " more";
  if (detours > 0) text += "; no direct path to " + std::to_string(detours) + " peers";
  if (excused > 0) text += "; " + std::to_string(excused) + " copies slow by the peer's fault";
  return RateResultOf(RateTally{}, slowest->result.value().samples, "GB/s", text,
                      devices[device].device->Sample());
}

}  // namespace

std::vector<CheckResult> RunPeerToPeer(std::span<const NodeDevice> devices,
                                       const CheckRequest& request) {
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].device != nullptr) usable.push_back(i);
  }
  std::vector<Tried> all;
  for (const Pair& pair : PairsOf(usable)) {
    all.push_back({pair, TryPair(*devices[pair.from].device, *devices[pair.to].device, request,
                                 request.seed + pair.from * devices.size() + pair.to)});
    if (IsSound(all.back())) all.back().p5 = Summarize(all.back().result.value().samples).p5;
  }
  const double fastest = FastestPair(all);
  const auto wrong = BlameFor(
      devices, all, [](const Tried& tried) { return tried.result.ok() && !IsSound(tried); });
  const auto failed = BlameFor(devices, all, [](const Tried& tried) { return !tried.result.ok(); });
  const auto slow = BlameFor(devices, all, [&](const Tried& tried) {
    return IsSound(tried) && tried.p5 < kSlowShare * fastest;
  });
  std::vector<CheckResult> results;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto mine = [&](bool ok) {
      return std::find_if(all.begin(), all.end(), [&](const Tried& tried) {
        return (tried.pair.from == i || tried.pair.to == i) && tried.result.ok() == ok &&
               !IsSound(tried);
      });
    };
    CheckResult result;
    if (devices[i].device == nullptr) {
      result = FromError(devices[i].error);
    } else if (wrong[i]) {
      result.verdict = VerdictKind::kFail;
      result.evidence = Complaint(*mine(true), devices);
    } else if (failed[i]) {
      result = FromError(mine(false)->result.error());
      result.evidence = Complaint(*mine(false), devices);
    } else if (usable.size() < 2) {
      result.evidence = "no other device of the node could be opened";
    } else {
      result = RateOf(i, devices, all, slow);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace bimetal::kernels
