#include "operator/agents/check_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "core/model/vendor.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kMaxId = 253;
constexpr std::size_t kMaxPod = 63 + 1 + 253;  // namespace/name
constexpr std::size_t kMaxShort = 128;
constexpr std::size_t kMaxText = 1024;
constexpr std::size_t kMaxEvidence = 4096;

constexpr std::array<std::string_view, 3> kSeverities = {"Info", "Warning", "Critical"};
constexpr std::array<std::string_view, 5> kVerdicts = {"Pass", "Degraded", "Fail", "Inconclusive",
                                                       "NoProfile"};
constexpr std::array<std::string_view, 3> kBackends = {"cuda", "hip", "host"};

Status Invalid(const std::string& field, const std::string& problem) {
  return Fail(ErrorCode::kInvalid, field + ": " + problem);
}

// A value of the caller, fit for a message: quoted, short, printable.
std::string Shown(std::string_view value) {
  std::string out = "\"";
  for (const char c : value.substr(0, 64)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (value.size() > 64 ? "...\"" : "\"");
}

std::string At(const std::string& list, int index) {
  return list + "[" + std::to_string(index) + "]";
}

// Names that become keys and label values: visible ASCII.
Status Token(const std::string& field, const std::string& value, std::size_t max) {
  if (value.empty()) return Invalid(field, "is empty");
  if (value.size() > max) {
    return Invalid(field, "is longer than " + std::to_string(max) + " bytes");
  }
  if (!std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7f; })) {
    return Invalid(field, Shown(value) + " has characters other than visible ASCII");
  }
  return {};
}

Status OptionalToken(const std::string& field, const std::string& value, std::size_t max) {
  return value.empty() ? Status() : Token(field, value, max);
}

// Text for people (protobuf has checked that it is UTF-8): bounded, without control characters
// other than line breaks and tabs.
Status Text(const std::string& field, const std::string& value, std::size_t max) {
  if (value.size() > max) {
    return Invalid(field, "is longer than " + std::to_string(max) + " bytes");
  }
  const auto bad = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7f;
  };
  if (std::any_of(value.begin(), value.end(), bad)) {
    return Invalid(field, "has control characters");
  }
  return {};
}

template <std::size_t N>
Status OneOf(const std::string& field, const std::string& value,
             const std::array<std::string_view, N>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return {};
  std::string names;
  for (const auto name : allowed) names += (names.empty() ? "" : ", ") + std::string(name);
  return Invalid(field, Shown(value) + " is none of " + names);
}

Status KnownVendor(const std::string& field, const std::string& value) {
  if (core::ParseVendor(value)) return {};
  return Invalid(field, Shown(value) + " is none of amd, nvidia");
}

Status Bounded(const std::string& field, int size, int max) {
  if (size <= max) return {};
  return Invalid(field,
                 "has " + std::to_string(size) + " entries, more than " + std::to_string(max));
}

Status NotNegative(const std::string& field, std::int64_t value) {
  if (value >= 0) return {};
  return Invalid(field, std::to_string(value) + " is negative");
}

Status CheckFirmware(const std::string& field, const api::Device& device) {
  BIMETAL_TRY(Bounded(field, static_cast<int>(device.firmware_size()), kMaxFirmware));
  // In the order of the keys: which error comes first must not depend on the map's hash.
  const std::map<std::string, std::string> sorted(device.firmware().begin(),
                                                  device.firmware().end());
  for (const auto& [name, version] : sorted) {
    BIMETAL_TRY(Token(field, name, kMaxShort));
    BIMETAL_TRY(Text(field + "." + name, version, kMaxShort));
  }
  return {};
}

Status CheckDevice(const std::string& field, const api::Device& device) {
  BIMETAL_TRY(Token(field + ".id", device.id(), kMaxId));
  BIMETAL_TRY(KnownVendor(field + ".vendor", device.vendor()));
  BIMETAL_TRY(NotNegative(field + ".index", device.index()));
  BIMETAL_TRY(Text(field + ".model", device.model(), kMaxShort));
  BIMETAL_TRY(OptionalToken(field + ".architecture", device.architecture(), kMaxShort));
  if (device.has_memory_bytes()) {
    BIMETAL_TRY(NotNegative(field + ".memory_bytes", device.memory_bytes()));
  }
  if (device.has_compute_units()) {
    BIMETAL_TRY(NotNegative(field + ".compute_units", device.compute_units()));
  }
  BIMETAL_TRY(OptionalToken(field + ".pci_address", device.pci_address(), kMaxShort));
  BIMETAL_TRY(OptionalToken(field + ".serial", device.serial(), kMaxShort));
  BIMETAL_TRY(Text(field + ".partition", device.partition(), kMaxShort));
  BIMETAL_TRY(OptionalToken(field + ".parent_id", device.parent_id(), kMaxId));
  if (!api::Health_IsValid(device.health())) {
    return Invalid(field + ".health", std::to_string(device.health()) + " is not a known value");
  }
  BIMETAL_TRY(Text(field + ".health_reason", device.health_reason(), kMaxText));
  BIMETAL_TRY(OptionalToken(field + ".holder", device.holder(), kMaxPod));
  return CheckFirmware(field + ".firmware", device);
}

Status CheckDevices(const api::Inventory& inventory) {
  const std::string list = "inventory.devices";
  BIMETAL_TRY(Bounded(list, inventory.devices_size(), kMaxDevices));
  std::map<std::string_view, int> seen;
  for (int i = 0; i < inventory.devices_size(); ++i) {
    const api::Device& device = inventory.devices(i);
    BIMETAL_TRY(CheckDevice(At(list, i), device));
    const auto [first, fresh] = seen.emplace(device.id(), i);
    if (!fresh) {
      return Invalid(At(list, i) + ".id",
                     Shown(device.id()) + " is also the id of " + At("devices", first->second));
    }
  }
  return {};
}

Status CheckStacks(const api::Inventory& inventory) {
  const std::string list = "inventory.stacks";
  std::set<std::string_view> vendors;
  for (int i = 0; i < inventory.stacks_size(); ++i) {
    const api::Stack& stack = inventory.stacks(i);
    const std::string field = At(list, i);
    BIMETAL_TRY(KnownVendor(field + ".vendor", stack.vendor()));
    if (!vendors.insert(stack.vendor()).second) {
      return Invalid(field + ".vendor", Shown(stack.vendor()) + " has a stack already");
    }
    BIMETAL_TRY(Text(field + ".driver_version", stack.driver_version(), kMaxShort));
    BIMETAL_TRY(Text(field + ".runtime_version", stack.runtime_version(), kMaxShort));
    BIMETAL_TRY(Token(field + ".fingerprint", stack.fingerprint(), kMaxShort));
  }
  for (int i = 0; i < inventory.devices_size(); ++i) {
    if (!vendors.contains(inventory.devices(i).vendor())) {
      return Invalid(At("inventory.devices", i) + ".vendor",
                     Shown(inventory.devices(i).vendor()) + " has no entry in inventory.stacks");
    }
  }
  return {};
}

Status CheckFindings(const api::Inventory& inventory) {
  const std::string list = "inventory.findings";
  BIMETAL_TRY(Bounded(list, inventory.findings_size(), kMaxFindings));
  for (int i = 0; i < inventory.findings_size(); ++i) {
    const api::Finding& finding = inventory.findings(i);
    const std::string field = At(list, i);
    BIMETAL_TRY(Token(field + ".code", finding.code(), kMaxShort));
    BIMETAL_TRY(OneOf(field + ".severity", finding.severity(), kSeverities));
    BIMETAL_TRY(OptionalToken(field + ".device", finding.device(), kMaxId));
    BIMETAL_TRY(Text(field + ".evidence", finding.evidence(), kMaxEvidence));
    BIMETAL_TRY(Text(field + ".remedy", finding.remedy(), kMaxEvidence));
  }
  return {};
}

Status CheckVerdict(const std::string& field, const api::Verdict& verdict) {
  BIMETAL_TRY(Token(field + ".check", verdict.check(), kMaxShort));
  BIMETAL_TRY(OptionalToken(field + ".device", verdict.device(), kMaxId));
  BIMETAL_TRY(OptionalToken(field + ".level", verdict.level(), kMaxShort));
  BIMETAL_TRY(OneOf(field + ".verdict", verdict.verdict(), kVerdicts));
  BIMETAL_TRY(Text(field + ".value", verdict.value(), kMaxShort));
  BIMETAL_TRY(Text(field + ".unit", verdict.unit(), kMaxShort));
  BIMETAL_TRY(Text(field + ".floor", verdict.floor(), kMaxShort));
  BIMETAL_TRY(Text(field + ".floor_source", verdict.floor_source(), kMaxText));
  BIMETAL_TRY(NotNegative(field + ".duration_ms", verdict.duration_ms()));
  return Text(field + ".evidence", verdict.evidence(), kMaxEvidence);
}

Status CheckTime(const std::string& field, const std::string& value) {
  if (value.empty() || ParseTime(value)) return {};
  return Invalid(field, Shown(value) + " is not an RFC 3339 time");
}

Status CheckRun(const std::string& field, const api::ValidationRun& run) {
  BIMETAL_TRY(Token(field + ".run", run.run(), kMaxId));
  BIMETAL_TRY(KnownVendor(field + ".vendor", run.vendor()));
  if (!run.backend().empty()) BIMETAL_TRY(OneOf(field + ".backend", run.backend(), kBackends));
  BIMETAL_TRY(OptionalToken(field + ".level", run.level(), kMaxShort));
  BIMETAL_TRY(OptionalToken(field + ".fingerprint", run.fingerprint(), kMaxShort));
  BIMETAL_TRY(CheckTime(field + ".started_time", run.started_time()));
  BIMETAL_TRY(CheckTime(field + ".finished_time", run.finished_time()));
  BIMETAL_TRY(Bounded(field + ".verdicts", run.verdicts_size(), kMaxVerdicts));
  for (int i = 0; i < run.verdicts_size(); ++i) {
    BIMETAL_TRY(CheckVerdict(At(field + ".verdicts", i), run.verdicts(i)));
  }
  return {};
}

Status CheckRuns(const api::ReportNodeRequest& request) {
  BIMETAL_TRY(Bounded("runs", request.runs_size(), kMaxRuns));
  std::map<std::string_view, int> seen;
  for (int i = 0; i < request.runs_size(); ++i) {
    BIMETAL_TRY(CheckRun(At("runs", i), request.runs(i)));
    const auto [first, fresh] = seen.emplace(request.runs(i).run(), i);
    if (!fresh) {
      return Invalid(At("runs", i) + ".run", Shown(request.runs(i).run()) + " is also the id of " +
                                                 At("runs", first->second));
    }
  }
  return {};
}

}  // namespace

Status CheckReport(const api::ReportNodeRequest& request) {
  BIMETAL_TRY(Token("node_name", request.node_name(), kMaxId));
  BIMETAL_TRY(Token("boot_id", request.boot_id(), kMaxShort));
  if (request.seq() <= 0) {
    return Invalid("seq", std::to_string(request.seq()) + " is not positive");
  }
  BIMETAL_TRY(Text("agent_version", request.agent_version(), kMaxShort));
  BIMETAL_TRY(Text("inventory.kernel_version", request.inventory().kernel_version(), kMaxText));
  BIMETAL_TRY(CheckDevices(request.inventory()));
  BIMETAL_TRY(CheckStacks(request.inventory()));
  BIMETAL_TRY(CheckFindings(request.inventory()));
  return CheckRuns(request);
}

}  // namespace bimetal::op
