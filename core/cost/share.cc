#include "core/cost/share.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/model/check.h"

namespace bimetal::core::cost {
namespace {

constexpr std::int64_t kMaxReplicas = 1000;
constexpr std::int64_t kMaxGigabytes = 100'000;

// A whole number of at most 6 digits; takes it off the front of `text`.
bool TakeNumber(std::string_view& text, std::int64_t& number) {
  const std::size_t digits =
      std::min(text.find_first_not_of("0123456789"), std::min<std::size_t>(text.size(), 7));
  if (digits == 0 || digits > 6) return false;
  std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  return true;
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string Text(Ratio ratio) {
  return std::to_string(ratio.numerator()) + "/" + std::to_string(ratio.denominator());
}

Status CheckInstance(const MigInstance& one, MigDevice device) {
  if (one.compute >= 1 && one.memory >= 1 && one.compute <= device.compute &&
      one.memory <= device.memory) {
    return {};
  }
  return Fail(ErrorCode::kInvalid,
              "an instance of " + std::to_string(one.compute) + " compute and " +
                  std::to_string(one.memory) + " memory slices does not fit a device of " +
                  std::to_string(device.compute) + " and " + std::to_string(device.memory));
}

}  // namespace

Result<Ratio> AmdPartitionShare(std::string_view mode, std::int64_t xcds) {
  const std::string_view compute = mode.substr(0, mode.find('/'));
  if (xcds < 1 || xcds > 1024) {
    return Fail(ErrorCode::kInvalid, "a device of " + std::to_string(xcds) + " XCDs");
  }
  std::int64_t parts = 0;
  if (compute == "SPX") parts = 1;
  if (compute == "DPX") parts = 2;
  if (compute == "TPX") parts = 3;
  if (compute == "QPX") parts = 4;
  if (compute == "CPX") parts = xcds;
  if (parts == 0) {
    return Fail(ErrorCode::kInvalid, Quoted(mode) +
                                         " is no compute partition mode; known are SPX, DPX, TPX, "
                                         "QPX and CPX");
  }
  if (xcds % parts != 0) {
    return Fail(ErrorCode::kUnsupported,
                Quoted(mode) + " does not divide " + std::to_string(xcds) + " XCDs evenly");
  }
  return Ratio::Of(1, parts);
}

Ratio DieShare(std::int64_t dies) { return Ratio::Of(1, dies); }

Result<MigInstance> MigProfile(std::string_view profile, std::int64_t device_gigabytes,
                               MigDevice device) {
  std::string_view rest = profile;
  MigInstance out;
  std::int64_t gigabytes = 0;
  const bool read = TakeNumber(rest, out.compute) && Take(rest, "g.") &&
                    TakeNumber(rest, gigabytes) && Take(rest, "gb") &&
                    (rest.empty() || rest.starts_with("+") || rest.starts_with("-"));
  if (!read) {
    return Fail(ErrorCode::kInvalid,
                Quoted(profile) + " is no MIG profile; they read as \"3g.40gb\"");
  }
  if (device_gigabytes < 1 || device_gigabytes > kMaxGigabytes) {
    return Fail(ErrorCode::kInvalid,
                "a device of " + std::to_string(device_gigabytes) + " gigabytes has no profiles");
  }
  out.memory = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(RoundHalfEven(gigabytes * device.memory, device_gigabytes)));
  BIMETAL_TRY(CheckInstance(out, device));
  return out;
}

Result<std::vector<Ratio>> MigShares(const std::vector<MigInstance>& configured, MigDevice device) {
  std::vector<Ratio> shares;
  Ratio sum;
  for (const MigInstance& one : configured) {
    BIMETAL_TRY(CheckInstance(one, device));
    shares.push_back(
        std::max(Ratio::Of(one.compute, device.compute), Ratio::Of(one.memory, device.memory)));
    BIMETAL_TRY_ASSIGN(sum, Add(sum, shares.back()));
  }
  if (sum <= Ratio::One()) return shares;
  const Ratio scale = Ratio::Of(sum.denominator(), sum.numerator());
  for (Ratio& share : shares) {
    BIMETAL_TRY_ASSIGN(share, Multiply(share, scale));
  }
  return shares;
}

Result<Ratio> ReplicaShare(std::int64_t replicas, Ratio part) {
  if (replicas < 1 || replicas > kMaxReplicas) {
    return Fail(ErrorCode::kInvalid, std::to_string(replicas) +
                                         " replicas of a device; known are 1 to " +
                                         std::to_string(kMaxReplicas));
  }
  return Multiply(part, Ratio::Of(1, replicas));
}

Result<Ratio> RestOfDevice(const std::vector<Ratio>& shares) {
  Ratio sum;
  for (const Ratio& share : shares) {
    BIMETAL_TRY_ASSIGN(sum, Add(sum, share));
  }
  if (sum > Ratio::One()) {
    return Fail(ErrorCode::kInvalid, "shares add up to " + Text(sum) + " of the device");
  }
  return Subtract(Ratio::One(), sum);
}

}  // namespace bimetal::core::cost
