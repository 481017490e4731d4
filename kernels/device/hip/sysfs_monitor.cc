#include "kernels/device/hip/sysfs_monitor.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "kernels/device/trace.h"

namespace bimetal::kernels {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::string ReadText(const fs::path& path) {
  const ScopedCall scope("reading sysfs");
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  return text;
}

// A number in a unit of `divisor` parts.
std::optional<double> ReadScaled(const fs::path& path, double divisor) {
  const std::optional<std::uint64_t> value = ParseNumber(ReadText(path));
  if (!value) return std::nullopt;
  return static_cast<double>(*value) / divisor;
}

// "ue: 0\nce: 3\n"
std::optional<std::uint64_t> ReadUncorrected(const fs::path& path) {
  const std::string text = ReadText(path);
  const std::size_t at = text.find("ue: ");
  if (at == std::string::npos) return std::nullopt;
  return ParseNumber(std::string_view(text).substr(at + 4));
}

class SysfsMonitor final : public Monitor {
 public:
  SysfsMonitor(fs::path device, fs::path sensors)
      : device_(std::move(device)), sensors_(std::move(sensors)) {}

  Telemetry Sample() override {
    Telemetry out;
    out.clock_mhz = ReadScaled(sensors_ / "freq1_input", 1e6);
    out.power_watts = ReadScaled(sensors_ / "power1_average", 1e6);
    if (!out.power_watts) out.power_watts = ReadScaled(sensors_ / "power1_input", 1e6);
    // The hot spot; boards without it have the edge.
    out.temperature_celsius = ReadScaled(sensors_ / "temp2_input", 1e3);
    if (!out.temperature_celsius) {
      out.temperature_celsius = ReadScaled(sensors_ / "temp1_input", 1e3);
    }
    out.uncorrected_errors = ReadUncorrected(device_ / "ras" / "umc_err_count");
    return out;
  }

 private:
  fs::path device_;
  fs::path sensors_;
};

}  // namespace

std::unique_ptr<Monitor> OpenSysfsMonitor(const DeviceInfo& info, const std::string& root) {
  if (info.pci_address.empty()) return nullptr;
  std::string address = info.pci_address;
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const fs::path device = fs::path(root) / "sys/bus/pci/devices" / address;
  std::error_code problem;
  if (!fs::is_directory(device, problem)) return nullptr;
  fs::path sensors;
  for (const auto& entry : fs::directory_iterator(device / "hwmon", problem)) {
    if (sensors.empty() || entry.path() < sensors) sensors = entry.path();
  }
  return std::make_unique<SysfsMonitor>(device, sensors);
}

}  // namespace bimetal::kernels
