#include "agent/devices/kernel_log.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "agent/devices/data_tables.h"
#include "agent/devices/nvidia/proc.h"
#include "agent/devices/root_files.h"
#include "agent/devices/sha256.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxFindings = 64;
constexpr std::size_t kMaxEvidence = 300;

struct AmdPattern {
  std::string_view text;
  std::string_view code;
  Severity severity;
  std::string_view remedy;
};

constexpr std::array<AmdPattern, 6> kAmdPatterns = {{
    {"uncorrectable hardware error", "RasUncorrected", Severity::kError,
     "validate the GPU again after the reset; replace it where the error comes again"},
    {"reaches threshold value", "BadPagesThreshold", Severity::kError, "replace the GPU"},
    {"GPU reset failed", "GpuResetFailed", Severity::kError, "reboot the node"},
    {"GPU reset begin", "GpuReset", Severity::kWarning, "validate the GPU again"},
    {"qcm fence wait loop timeout", "RingTimeout", Severity::kWarning,
     "look for the program that hung the GPU; validate the GPU again"},
    {"timeout, signaled seq", "RingTimeout", Severity::kWarning,
     "look for the program that hung the GPU; validate the GPU again"},
}};

// "6,1234,5678,-;text": the sequence number of a /dev/kmsg record; else a hash of the line.
std::string EventKey(std::string_view line) {
  const auto semicolon = line.find(';');
  const auto comma = line.find(',');
  if (semicolon != std::string_view::npos && comma < semicolon) {
    const auto rest = line.substr(comma + 1, semicolon - comma - 1);
    const auto number = rest.substr(0, rest.find(','));
    if (ParseUnsigned(number)) return "kmsg-" + std::string(number);
  }
  return "line-" + Sha256Hex(line).substr(0, 16);
}

// NVRM: Xid (PCI:0000:18:00): 79, ... ; old drivers print no "PCI:".
std::optional<KernelEvent> ParseXidLine(std::string_view line) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  const auto at = line.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kMark.size());
  if (rest.starts_with("PCI:")) rest.remove_prefix(4);
  const auto close = rest.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  KernelEvent event;
  event.pci_address = NormalPciAddress(rest.substr(0, close));
  rest.remove_prefix(close + 3);
  const auto number = ParseUnsigned(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!number || *number == 0 || *number > 100'000) return std::nullopt;
  event.xid = static_cast<int>(*number);
  event.text = std::string(Trim(line.substr(at)).substr(0, kMaxEvidence));
  event.key = EventKey(line);
  return event;
}

// amdgpu 0000:e3:00.0: [amdgpu: ]text
std::optional<KernelEvent> ParseAmdLine(std::string_view line) {
  constexpr std::string_view kMark = "amdgpu ";
  const auto at = line.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + kMark.size());
  const auto end = rest.find(": ");
  const std::string_view address = rest.substr(0, end);
  if (end == std::string_view::npos || address.size() < 7 ||
      address.find_first_not_of("0123456789abcdef:.") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = rest.substr(end + 2);
  const bool trouble = std::any_of(kAmdPatterns.begin(), kAmdPatterns.end(), [&](const auto& p) {
    return text.find(p.text) != std::string_view::npos;
  });
  if (!trouble || text.find(" 0 new uncorrectable") != std::string_view::npos) return std::nullopt;
  KernelEvent event;
  event.vendor = Vendor::kAmd;
  event.pci_address = NormalPciAddress(address);
  event.text = std::string(Trim(line.substr(at)).substr(0, kMaxEvidence));
  event.key = EventKey(line);
  return event;
}

// The state in "... to 0x4 (Drain and Reset)".
std::string RecoveryState(std::string_view text) {
  const auto open = text.rfind('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

Finding XidFinding(const KernelEvent& event) {
  const XidMeaning meaning = FindXid(event.xid);
  Finding finding{"XidContained", Severity::kWarning, "", event.text, meaning.remedy, event.key};
  switch (meaning.kind) {
    case XidClass::kFatal:
      finding.code = "XidFatal";
      finding.severity = Severity::kError;
      break;
    case XidClass::kContained:
      break;
    case XidClass::kLink:
      finding.code = "XidLink";
      if (event.text.find(" Fatal ") != std::string::npos) finding.severity = Severity::kError;
      break;
    case XidClass::kRecovery: {
      const std::string state = RecoveryState(event.text);
      finding.code = state == "None" ? "" : "XidRecovery";
      finding.severity = Severity::kError;
      if (!state.empty()) finding.remedy = "the driver asks for: " + state;
      break;
    }
    case XidClass::kApplication:
      finding.code = "XidApplication";
      finding.severity = Severity::kInfo;
      break;
    case XidClass::kNote:
      finding.code.clear();
      break;
  }
  return finding;
}

Finding AmdFinding(const KernelEvent& event) {
  for (const AmdPattern& pattern : kAmdPatterns) {
    if (event.text.find(pattern.text) == std::string::npos) continue;
    return {std::string(pattern.code),   pattern.severity, "", event.text,
            std::string(pattern.remedy), event.key};
  }
  return {};
}

std::string DeviceAt(const KernelEvent& event, const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    if (device.vendor != event.vendor || !device.pci_address.known()) continue;
    if (device.pci_address.value != event.pci_address) continue;
    return device.parent.known() ? device.parent.value : device.id.value;
  }
  return event.pci_address;
}

}  // namespace

std::optional<KernelEvent> ParseKernelLine(std::string_view line) {
  if (auto event = ParseXidLine(line)) return event;
  return ParseAmdLine(line);
}

std::vector<Finding> KernelFindings(std::string_view log, const std::vector<Device>& devices) {
  std::map<std::pair<std::string, std::string>, Finding> newest;
  for (const std::string_view line : Lines(log)) {
    const auto event = ParseKernelLine(line);
    if (!event) continue;
    Finding finding = event->vendor == Vendor::kNvidia ? XidFinding(*event) : AmdFinding(*event);
    if (finding.code.empty()) continue;
    finding.device = DeviceAt(*event, devices);
    const std::string kind = finding.code + " " + std::to_string(event->xid);
    newest[{kind, finding.device}] = std::move(finding);
  }
  std::vector<Finding> findings;
  for (auto& [key, finding] : newest) findings.push_back(std::move(finding));
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  if (findings.size() > kMaxFindings) findings.resize(kMaxFindings);
  return findings;
}

}  // namespace bimetal::agent
