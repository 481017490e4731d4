#include "agent/devices/amd/gpu_metrics.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace bimetal::agent {
namespace {

// Little endian, as amdgpu writes on every machine that it runs on.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size(); }

  std::optional<std::uint64_t> Raw(std::size_t at, std::size_t width) const {
    if (at > bytes_.size() || width > bytes_.size() - at) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[at + i])) << (8 * i);
    }
    return value;
  }

  // Empty too where all bits are ones: not supported.
  std::optional<std::uint64_t> Get(std::size_t at, std::size_t width) const {
    const auto value = Raw(at, width);
    if (!value || *value == Ones(width)) return std::nullopt;
    return value;
  }

  static std::uint64_t Ones(std::size_t width) {
    return width == 8 ? std::numeric_limits<std::uint64_t>::max()
                      : (std::uint64_t{1} << (8 * width)) - 1;
  }

 private:
  std::string_view bytes_;
};

// Where a version keeps a field: offset and width in bytes. Width 0: it has none.
struct Slot {
  std::size_t at = 0;
  std::size_t width = 0;
};

struct Layout {
  int format = 0;
  int content = 0;
  std::size_t size = 0;
  Slot temperature{}, memory_temperature{}, power{}, energy{}, activity{};
  Slot graphics_clock{};  // the first of graphics_clocks
  int graphics_clocks = 1;
  Slot memory_clock{}, link_width{}, replays{}, throttlers{}, partitions{};
  Slot average_graphics_clock{}, average_memory_clock{};  // where the present ones are not told
  std::size_t residency = 0;    // five u32: processor-hot, power, socket, regulator, HBM; 0: none
  std::size_t xgmi_status = 0;  // eight u16; 0: none
  std::int64_t temperature_unit = 1000;  // in thousandths of a degree
  std::int64_t power_unit = 1000;        // in milliwatts
};

constexpr Slot U16(std::size_t at) { return {at, 2}; }
constexpr Slot U32(std::size_t at) { return {at, 4}; }
constexpr Slot U64(std::size_t at) { return {at, 8}; }
constexpr Slot kNone{};

// Offsets follow from the structures of the kernel's kgd_pp_interface.h with natural alignment
// (2026-11). The throttle word of 1.0 to 1.2, 1.4, 1.5, 2.0 and 2.1 differs from chip to chip and
// is left out; that of 1.3, 2.2 and later is the common one.
constexpr std::array<Layout, 15> kLayouts = {{
    {1, 0, 80, U16(18), U16(20), U16(34), U32(36), U16(28), U16(54), 1, U16(58), Slot{74, 1}, kNone,
     kNone, kNone, U16(40), U16(44)},
    {1, 1, 96, U16(6), U16(8), U16(22), U64(24), U16(16), U16(54), 1, U16(58), U16(74), kNone,
     kNone, kNone, U16(40), U16(44)},
    {1, 2, 104, U16(6), U16(8), U16(22), U64(24), U16(16), U16(54), 1, U16(58), U16(74), kNone,
     kNone, kNone, U16(40), U16(44)},
    {1, 3, 120, U16(6), U16(8), U16(22), U64(24), U16(16), U16(54), 1, U16(58), U16(74), kNone,
     U64(112), kNone, U16(40), U16(44)},
    {1, 4, 288, U16(4), U16(6), U16(10), U64(24), U16(12), U16(240), 8, U16(280), U16(48), U64(88),
     kNone, kNone, kNone, kNone},
    {1, 5, 360, U16(4), U16(6), U16(10), U64(88), U16(12), U16(312), 8, U16(352), U16(112),
     U64(152), kNone, kNone, kNone, kNone},
    {1, 6, 1664, U16(4), U16(6), U16(10), U64(16), U16(12), U16(264), 8, U16(304), U16(60),
     U64(104), kNone, U16(306), kNone, kNone, 36},
    {1, 7, 2208, U16(4), U16(6), U16(10), U64(24), U16(12), U16(296), 8, U16(336), U16(68),
     U64(112), kNone, U16(338), kNone, kNone, 44, 264},
    {1, 8, 3872, U16(4), U16(6), U16(10), U64(24), U16(12), U16(296), 8, U16(336), U16(68),
     U64(112), kNone, U16(338), kNone, kNone, 44, 264},
    // Of APUs temperatures are hundredths of a degree and power is milliwatts.
    {2,     0,     120,   U16(16), kNone,   U16(44), kNone, U16(40), U16(80), 1, U16(84),
     kNone, kNone, kNone, kNone,   U16(68), U16(72), 0,     0,       10,      1},
    {2,     1,     120,   U16(4), kNone,   U16(40), kNone, U16(28), U16(76), 1, U16(80),
     kNone, kNone, kNone, kNone,  U16(64), U16(68), 0,     0,       10,      1},
    {2,     2,     128,      U16(4), kNone,   U16(40), kNone, U16(28), U16(76), 1, U16(80),
     kNone, kNone, U64(120), kNone,  U16(64), U16(68), 0,     0,       10,      1},
    {2,     3,     152,      U16(4), kNone,   U16(40), kNone, U16(28), U16(76), 1, U16(80),
     kNone, kNone, U64(120), kNone,  U16(64), U16(68), 0,     0,       10,      1},
    {2,     4,     168,      U16(4), kNone,   U16(40), kNone, U16(28), U16(76), 1, U16(80),
     kNone, kNone, U64(120), kNone,  U16(64), U16(68), 0,     0,       10,      1},
    {3,     0,     264,   U16(4), kNone, U32(112), kNone, U16(42), U16(174), 1, U16(186),
     kNone, kNone, kNone, kNone,  kNone, kNone,    0,     0,       10,       1},
}};

constexpr std::array<const char*, 5> kResidencies = {"hardware-thermal", "power-cap", "thermal",
                                                     "regulator-thermal", "memory-thermal"};

std::optional<std::int64_t> Scaled(std::optional<std::uint64_t> value, std::int64_t unit) {
  if (!value || *value > static_cast<std::uint64_t>(INT64_MAX / unit)) return std::nullopt;
  return static_cast<std::int64_t>(*value) * unit;
}

// The accumulator counts units of 2^-16 J.
std::optional<std::int64_t> Millijoules(std::optional<std::uint64_t> accumulator) {
  // Cards that do not count leave it at 0.
  if (!accumulator || *accumulator == 0) return std::nullopt;
  const std::uint64_t whole = *accumulator >> 16;
  if (whole > static_cast<std::uint64_t>(INT64_MAX / 1000 - 1)) return std::nullopt;
  return static_cast<std::int64_t>(whole * 1000 + ((*accumulator & 0xffff) * 1000 >> 16));
}

std::optional<std::uint64_t> At(const Bytes& bytes, Slot slot) {
  return slot.width == 0 ? std::nullopt : bytes.Get(slot.at, slot.width);
}

void KeepHighest(std::optional<std::uint64_t> value, std::optional<std::int64_t>& highest) {
  const auto number = Scaled(value, 1);
  if (number) highest = std::max(highest.value_or(0), *number);
}

// One status of a link: 1 up, 0 down; others tell nothing.
void CountLink(std::optional<std::uint64_t> status, GpuMetrics& out) {
  if (!status || *status > 1) return;
  out.xgmi_links = out.xgmi_links.value_or(0) + 1;
  out.xgmi_links_up = out.xgmi_links_up.value_or(0) + static_cast<int>(*status);
}

GpuMetrics ReadLayout(const Bytes& bytes, const Layout& layout) {
  GpuMetrics out;
  out.format = layout.format;
  out.content = layout.content;
  out.temperature_millicelsius = Scaled(At(bytes, layout.temperature), layout.temperature_unit);
  out.memory_temperature_millicelsius =
      Scaled(At(bytes, layout.memory_temperature), layout.temperature_unit);
  out.power_milliwatts = Scaled(At(bytes, layout.power), layout.power_unit);
  out.energy_millijoules = Millijoules(At(bytes, layout.energy));
  out.activity = Scaled(At(bytes, layout.activity), 1);
  for (int i = 0; i < layout.graphics_clocks; ++i) {
    Slot slot = layout.graphics_clock;
    slot.at += static_cast<std::size_t>(i) * slot.width;
    KeepHighest(At(bytes, slot), out.graphics_clock_mhz);
  }
  out.memory_clock_mhz = Scaled(At(bytes, layout.memory_clock), 1);
  if (!out.graphics_clock_mhz) {
    out.graphics_clock_mhz = Scaled(At(bytes, layout.average_graphics_clock), 1);
  }
  if (!out.memory_clock_mhz) {
    out.memory_clock_mhz = Scaled(At(bytes, layout.average_memory_clock), 1);
  }
  out.link_width = Scaled(At(bytes, layout.link_width), 1);
  out.link_replays = Scaled(At(bytes, layout.replays), 1);
  out.partitions = Scaled(At(bytes, layout.partitions), 1);
  out.throttlers = At(bytes, layout.throttlers);
  for (std::size_t i = 0; layout.residency != 0 && i < kResidencies.size(); ++i) {
    const auto count = Scaled(bytes.Get(layout.residency + 4 * i, 4), 1);
    if (count) out.throttle_counts[kResidencies[i]] = *count;
  }
  for (std::size_t i = 0; layout.xgmi_status != 0 && i < 8; ++i) {
    CountLink(bytes.Get(layout.xgmi_status + 2 * i, 2), out);
  }
  return out;
}

// One attribute of version 1.9. Numbers of others are left out: the list grows with the driver.
void TakeAttribute(unsigned id, std::optional<std::uint64_t> value, bool first, GpuMetrics& out) {
  const auto number = Scaled(value, 1);
  switch (id) {
    case 0:
      out.temperature_millicelsius = Scaled(value, 1000);
      break;
    case 1:
      out.memory_temperature_millicelsius = Scaled(value, 1000);
      break;
    case 3:
      out.power_milliwatts = Scaled(value, 1000);
      break;
    case 4:
      out.activity = number;
      break;
    case 7:
      out.energy_millijoules = Millijoules(value);
      break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
      if (number) out.throttle_counts[kResidencies[id - 10]] = *number;
      break;
    case 16:
      out.link_width = number;
      break;
    case 25:
      out.link_replays = number;
      break;
    case 31:
      CountLink(value, out);
      break;
    case 33:
      KeepHighest(value, out.graphics_clock_mhz);
      break;
    case 37:
      if (first) out.memory_clock_mhz = number;
      break;
    case 38:
      out.partitions = number;
      break;
    default:
      break;
  }
}

Result<GpuMetrics> ReadAttributes(const Bytes& bytes) {
  GpuMetrics out;
  out.format = 1;
  out.content = 9;
  const auto count = bytes.Raw(4, 4);
  std::size_t at = 8;
  for (std::uint64_t n = 0; count && n < *count; ++n) {
    const auto code = bytes.Raw(at, 8);
    if (!code) return Fail(ErrorCode::kData, "gpu_metrics: its list of attributes is cut off");
    at += 8;
    const unsigned type = (*code >> 20) & 0xf;
    const unsigned id = (*code >> 10) & 0x3ff;
    const std::uint64_t instances = *code & 0x3ff;
    if (type > 7) return Fail(ErrorCode::kData, "gpu_metrics: an attribute of unknown type");
    const std::size_t width = std::size_t{1} << (type / 2);
    for (std::uint64_t i = 0; i < instances; ++i, at += width) {
      if (!bytes.Raw(at, width)) {
        return Fail(ErrorCode::kData, "gpu_metrics: its list of attributes is cut off");
      }
      TakeAttribute(id, bytes.Get(at, width), i == 0, out);
    }
  }
  if (!count) return Fail(ErrorCode::kData, "gpu_metrics: its list of attributes is cut off");
  return out;
}

}  // namespace

Result<GpuMetrics> ParseGpuMetrics(std::string_view text) {
  const Bytes bytes(text);
  const auto size = bytes.Raw(0, 2);
  const auto format = bytes.Raw(2, 1);
  const auto content = bytes.Raw(3, 1);
  if (!content) return Fail(ErrorCode::kData, "gpu_metrics: shorter than its header");
  const std::string version = std::to_string(*format) + "." + std::to_string(*content);
  if (*size != bytes.size()) {
    return Fail(ErrorCode::kData, "gpu_metrics " + version + ": " + std::to_string(bytes.size()) +
                                      " bytes, its header says " + std::to_string(*size));
  }
  if (*format == 1 && *content == 9) return ReadAttributes(bytes);
  for (const Layout& layout : kLayouts) {
    if (static_cast<std::uint64_t>(layout.format) != *format ||
        static_cast<std::uint64_t>(layout.content) != *content) {
      continue;
    }
    if (layout.size == bytes.size()) return ReadLayout(bytes, layout);
    return Fail(ErrorCode::kData, "gpu_metrics " + version + ": " + std::to_string(bytes.size()) +
                                      " bytes, the version has " + std::to_string(layout.size));
  }
  return Fail(ErrorCode::kUnsupported, "gpu_metrics " + version + ": unknown version");
}

std::vector<std::string> ThrottleReasons(std::uint64_t throttlers) {
  // Bits by the kernel's amdgpu_smu.h: 0-15 power, 16-31 current, 32-47 temperature (44 and later:
  // a pin says "hot"), 56 and later others.
  constexpr std::uint64_t kPower = 0xffff;
  constexpr std::uint64_t kCurrent = 0xffff0000;
  constexpr std::uint64_t kThermal = 0x00000fff00000000;
  constexpr std::uint64_t kPins = 0x0000f00000000000;
  std::vector<std::string> reasons;
  if ((throttlers & kCurrent) != 0) reasons.emplace_back("current");
  if ((throttlers & kPins) != 0) reasons.emplace_back("hardware-thermal");
  if ((throttlers >> 48) != 0) reasons.emplace_back("other");
  if ((throttlers & kPower) != 0) reasons.emplace_back("power-cap");
  if ((throttlers & kThermal) != 0) reasons.emplace_back("thermal");
  return reasons;
}

}  // namespace bimetal::agent
