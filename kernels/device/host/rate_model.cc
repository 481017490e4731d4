// What simulated devices claim: from their description, with seeded noise, never from a clock.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "kernels/device/host/host_device.h"

namespace bimetal::kernels {
namespace {

// As HostRate, of a sound device of one architecture.
struct ArchRates {
  std::string_view arch;
  double memory;     // GB/s
  double host;       // GB/s over PCIe
  double peer;       // GB/s to one peer
  double ring;       // GB/s of bus bandwidth
  double latency;    // us
  double tflops[6];  // fp64, fp32 and tf32, fp16 and bf16, fp8, int8, fp64 outside matrix cores
};

// Between the floors and the peaks of A100 80 GB, H100 SXM, MI250X (one die) and MI300X; the first
// stands for all others.
constexpr ArchRates kArchRates[] = {
    {"", 1800, 23, 40, 100, 6, {5, 10, 100, 200, 200, 5}},
    {"sm_80", 1800, 24, 260, 240, 5, {14, 15, 240, 300, 400, 8}},
    {"sm_90", 2950, 53, 380, 470, 5, {48, 45, 700, 1300, 1300, 30}},
    {"gfx90a", 1350, 25, 38, 130, 7, {32, 34, 150, 150, 160, 18}},
    {"gfx942", 4350, 53, 44, 310, 8, {80, 110, 680, 1300, 1300, 60}},
};
constexpr double kNoisePercent = 1.0;

std::uint64_t MixBits(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// In [-1, 1), most often near 0: the sum of two dice.
double Deviation(std::uint64_t* state) {
  double sum = 0;
  for (int die = 0; die < 2; ++die) {
    *state = MixBits(*state);
    sum += static_cast<double>(*state >> 11) / static_cast<double>(1ull << 53) - 0.5;
  }
  return sum;
}

bool IsHbm(std::string_view check) { return check.starts_with("hbm-"); }
bool IsGemm(std::string_view check) { return check.starts_with("gemm-rate"); }

}  // namespace

std::map<std::string, HostRate, std::less<>> DefaultRates(const DeviceInfo& info) {
  const auto* arch = std::find_if(std::next(std::begin(kArchRates)), std::end(kArchRates),
                                  [&](const ArchRates& known) { return known.arch == info.arch; });
  const ArchRates& r = arch == std::end(kArchRates) ? kArchRates[0] : *arch;
  std::map<std::string, HostRate, std::less<>> rates;
  const auto set = [&](const char* check, double value) { rates[check] = {value, kNoisePercent}; };
  for (const char* check : {"hbm-copy", "hbm-scale", "hbm-add", "hbm-triad", "hbm-dot"}) {
    set(check, r.memory);
  }
  set("host-to-device", r.host);
  set("device-to-host", r.host);
  set("peer-to-peer", r.peer);
  set("collective", r.ring);
  set("launch-latency", r.latency);
  set("gemm-rate-fp64", r.tflops[0]);
  set("gemm-rate-fp32", r.tflops[1]);
  set("gemm-rate-tf32", r.tflops[1]);
  set("gemm-rate-fp16", r.tflops[2]);
  set("gemm-rate-bf16", r.tflops[2]);
  for (const char* check : {"gemm-rate-fp8-ocp", "gemm-rate-fp8-fnuz"}) set(check, r.tflops[3]);
  set("gemm-rate-int8", r.tflops[4]);
  set("gemm-rate", r.tflops[5]);  // any other precision
  return rates;
}

std::optional<std::vector<double>> HostDevice::ModelledRates(std::string_view check,
                                                             std::uint64_t seed,
                                                             std::size_t samples) const {
  if (spec_.rates.empty()) return std::nullopt;
  auto found = spec_.rates.find(check);
  if (found == spec_.rates.end() && IsGemm(check)) found = spec_.rates.find("gemm-rate");
  if (found == spec_.rates.end()) return std::nullopt;
  const HostRate& rate = found->second;
  double value = rate.value;
  const bool host = check == "host-to-device" || check == "device-to-host";
  const bool peer = check == "peer-to-peer" || check == "collective";
  for (const HostFault& fault : spec_.faults) {
    const bool slower = (fault.kind == HostFault::Kind::kSlowMemory && IsHbm(check)) ||
                        (fault.kind == HostFault::Kind::kSlowHost && host) ||
                        (fault.kind == HostFault::Kind::kSlowLink && peer) ||
                        (fault.kind == HostFault::Kind::kSlowCompute && IsGemm(check));
    if (slower) value *= (100.0 - fault.percent) / 100.0;
    // Down to the host's memory and up again.
    const auto detour = spec_.rates.find("host-to-device");
    if (fault.kind == HostFault::Kind::kLinkDown && peer && detour != spec_.rates.end()) {
      value = std::min(value, detour->second.value / 2);
    }
  }
  std::uint64_t state = MixBits(seed);
  for (const char c : spec_.info.id + "|" + std::string(check)) {
    state = MixBits(state ^ static_cast<unsigned char>(c));
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < samples; ++i) {
    out.push_back(value * (1 + rate.noise_percent / 100 * Deviation(&state)));
  }
  return out;
}

}  // namespace bimetal::kernels
