#include "agent/devices/nvidia/nvml_asker.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <limits>

#include "agent/devices/nvidia/proc.h"

namespace bimetal::agent {
namespace {

constexpr auto kMostLong = static_cast<std::uint64_t>(INT64_MAX);

Reading<std::string> FromBuffer(const char* buffer) {
  if (*buffer == '\0') return Reading<std::string>::Unknown("the library gives an empty text");
  return Reading<std::string>::Of(buffer);
}

Reading<std::int64_t> FromLong(std::uint64_t value) {
  if (value > kMostLong) return NvmlAsker::NotAvailable();
  return Reading<std::int64_t>::Of(static_cast<std::int64_t>(value));
}

}  // namespace

NvmlAsker::Text NvmlAsker::String(nvml::TextCall call) {
  std::array<char, 256> buffer{};
  if (call == nullptr) return Missing<std::string>();
  const auto code = call(handle_, buffer.data(), static_cast<unsigned>(buffer.size() - 1));
  if (code != nvml::kSuccess) return Answer<std::string>(code);
  return FromBuffer(buffer.data());
}

NvmlAsker::Text NvmlAsker::GspFirmware() {
  std::array<char, 256> buffer{};
  if (api_.gsp_firmware == nullptr) return Missing<std::string>();
  const auto code = api_.gsp_firmware(handle_, buffer.data());
  if (code != nvml::kSuccess) return Answer<std::string>(code);
  return FromBuffer(buffer.data());
}

NvmlAsker::Number NvmlAsker::Unsigned(nvml::NumberCall call) {
  unsigned value = 0;
  if (call == nullptr) return Missing<std::int64_t>();
  const auto code = call(handle_, &value);
  if (code != nvml::kSuccess) return Answer<std::int64_t>(code);
  if (value == std::numeric_limits<unsigned>::max()) return NotAvailable();
  return Number::Of(value);
}

NvmlAsker::Number NvmlAsker::Long(nvml::LongCall call) {
  std::uint64_t value = 0;
  if (call == nullptr) return Missing<std::int64_t>();
  const auto code = call(handle_, &value);
  return code == nvml::kSuccess ? FromLong(value) : Answer<std::int64_t>(code);
}

NvmlAsker::Number NvmlAsker::Mode(nvml::TwoNumbersCall call) {
  unsigned now = 0;
  unsigned pending = 0;
  if (call == nullptr) return Missing<std::int64_t>();
  const auto code = call(handle_, &now, &pending);
  return code == nvml::kSuccess ? Number::Of(now) : Answer<std::int64_t>(code);
}

NvmlAsker::Memory NvmlAsker::MemoryInfo() {
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  nvml::Return code = nvml::kFunctionNotFound;
  if (api_.memory_v2 != nullptr) {
    nvml::MemoryV2 memory{};
    memory.version = nvml::kMemoryV2Version;
    code = api_.memory_v2(handle_, &memory);
    total = memory.total;
    used = memory.used;
  }
  if (code != nvml::kSuccess && api_.memory_v1 != nullptr) {
    nvml::MemoryV1 memory{};
    code = api_.memory_v1(handle_, &memory);
    total = memory.total;
    used = memory.used;
  }
  if (code != nvml::kSuccess) return {Answer<std::int64_t>(code), Answer<std::int64_t>(code)};
  if (total == 0 || total > kMostLong) return {NotAvailable(), NotAvailable()};
  return {FromLong(total), FromLong(used)};
}

NvmlAsker::Text NvmlAsker::Architecture() {
  int major = 0;
  int minor = 0;
  if (api_.compute_capability == nullptr) return Missing<std::string>();
  const auto code = api_.compute_capability(handle_, &major, &minor);
  if (code != nvml::kSuccess) return Answer<std::string>(code);
  if (major < 1 || major > 99 || minor < 0 || minor > 9) {
    return Text::Failed("compute capability " + std::to_string(major) + "." +
                        std::to_string(minor) + " is not possible");
  }
  return Text::Of("sm_" + std::to_string(major) + std::to_string(minor));
}

NvmlAsker::Pci NvmlAsker::PciInfo() {
  nvml::PciInfo info{};
  if (api_.pci_info == nullptr) return {Missing<std::string>(), Missing<std::string>()};
  const auto code = api_.pci_info(handle_, &info);
  if (code != nvml::kSuccess) return {Answer<std::string>(code), Answer<std::string>(code)};
  Pci out;
  const std::string text(info.bus_id, strnlen(info.bus_id, sizeof info.bus_id));
  out.address = text.empty() ? Text::Unknown("the library gives no bus id")
                             : Text::Of(NormalPciAddress(text));
  std::array<char, 16> id;
  std::snprintf(id.data(), id.size(), "%04x:%04x", info.pci_device_id & 0xffffU,
                info.pci_device_id >> 16);
  out.id =
      info.pci_device_id == 0 ? Text::Unknown("the library gives no PCI id") : Text::Of(id.data());
  return out;
}

NvmlAsker::Number NvmlAsker::EccErrors(int counter) {
  std::uint64_t count = 0;
  constexpr int kVolatile = 0;
  if (api_.total_ecc_errors == nullptr) return Missing<std::int64_t>();
  const auto code = api_.total_ecc_errors(handle_, counter, kVolatile, &count);
  return code == nvml::kSuccess ? FromLong(count) : Answer<std::int64_t>(code);
}

NvmlAsker::Number NvmlAsker::Field(unsigned id) {
  if (api_.fields == nullptr) return Missing<std::int64_t>();
  nvml::FieldValue field{};
  field.id = id;
  const auto code = api_.fields(handle_, 1, &field);
  if (code != nvml::kSuccess) return Answer<std::int64_t>(code);
  if (field.code != nvml::kSuccess) return Answer<std::int64_t>(field.code);
  switch (field.value_type) {
    case 1:
      return Number::Of(static_cast<std::int64_t>(field.value & 0xffffffffU));
    case 2:
    case 3:
    case 4:
      return FromLong(field.value);
    case 5:
      return Number::Of(static_cast<std::int32_t>(field.value & 0xffffffffU));
    case 6:
      return Number::Of(static_cast<std::int64_t>(field.value & 0xffffU));
    default:
      return Number::Failed("field " + std::to_string(id) + " is no whole number");
  }
}

}  // namespace bimetal::agent
