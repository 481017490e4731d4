#include "workloads/program/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace bimetal::workloads {
namespace {

constexpr std::uint64_t kMaxWorld = 65'536;

kernels::Outcome<std::uint64_t> Number(const Environment& environment, const std::string& name,
                                       std::uint64_t low, std::uint64_t high) {
  const std::string text = environment(name).value_or("");
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size() &&
      value >= low && value <= high) {
    return value;
  }
  return kernels::DeviceError{kernels::DeviceErrorCode::kFailed,
                              "variable " + name + "='" + text + "' must be a whole number from " +
                                  std::to_string(low) + " to " + std::to_string(high) +
                                  "; the operator sets it, or set it by hand"};
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

kernels::Outcome<GangPlace> PlaceFromEnvironment(const Environment& environment) {
  GangPlace place;
  const std::array<std::string, 4> names = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  const bool alone = std::none_of(names.begin(), names.end(), [&](const std::string& name) {
    return environment(name).has_value();
  });
  if (alone) return place;
  KERNELS_TRY_ASSIGN(const std::uint64_t world, Number(environment, "WORLD_SIZE", 1, kMaxWorld));
  KERNELS_TRY_ASSIGN(const std::uint64_t rank, Number(environment, "RANK", 0, world - 1));
  place.world = static_cast<std::uint32_t>(world);
  place.rank = static_cast<std::uint32_t>(rank);
  if (world > 1) {
    KERNELS_TRY_ASSIGN(const std::uint64_t port, Number(environment, "MASTER_PORT", 1, 65'535));
    place.master_port = static_cast<std::uint16_t>(port);
    place.master_host = environment("MASTER_ADDR").value_or("");
    if (place.master_host.empty()) {
      return kernels::DeviceError{kernels::DeviceErrorCode::kFailed,
                                  "variable MASTER_ADDR must name rank 0's host; the operator "
                                  "sets it, or set it by hand"};
    }
  }
  place.session = environment("BIMETAL_JOB_UID").value_or("") + "/" +
                  environment("BIMETAL_ATTEMPT").value_or("");
  return place;
}

std::vector<std::string> RelevantVariables(const char* const* environ) {
  constexpr std::array<std::string_view, 13> kPrefixes = {"BIMETAL_",
                                                          "RANK=",
                                                          "WORLD_SIZE=",
                                                          "LOCAL_RANK=",
                                                          "LOCAL_WORLD_SIZE=",
                                                          "MASTER_",
                                                          "NCCL_",
                                                          "RCCL_",
                                                          "NVIDIA_VISIBLE_DEVICES=",
                                                          "CUDA_VISIBLE_DEVICES=",
                                                          "ROCR_",
                                                          "HIP_",
                                                          "GPU_DEVICE_ORDINAL="};
  constexpr std::array<std::string_view, 4> kSecrets = {"TOKEN", "SECRET", "PASSWORD", "KEY"};
  std::vector<std::string> found;
  for (; *environ != nullptr; ++environ) {
    const std::string_view entry = *environ;
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool wanted = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                    [&](std::string_view p) { return entry.starts_with(p); });
    const bool secret = std::any_of(kSecrets.begin(), kSecrets.end(), [&](std::string_view s) {
      return name.find(s) != std::string_view::npos;
    });
    if (wanted && !secret) found.emplace_back(entry);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace bimetal::workloads
