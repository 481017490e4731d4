#include "kernels/machine/machine.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>

#include "kernels/json/json.h"

namespace bimetal::kernels {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 4u << 20;
constexpr std::size_t kMaxDevices = 64;
constexpr std::int64_t kMaxUnits = 4096;
constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

// Reads the members of one object; the first problem stays and stops the rest.
class Members {
 public:
  Members(const JsonValue& value, std::string where) : value_(value), where_(std::move(where)) {
    if (value.AsObject() == nullptr) Refuse("must be an object");
  }

  void Only(std::initializer_list<std::string_view> keys) {
    if (value_.AsObject() == nullptr) return;
    for (const auto& [key, member] : *value_.AsObject()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        Refuse("unknown key \"" + key + "\"");
      }
    }
  }
  std::string Text(std::string_view key, bool required) {
    const JsonValue* member = Get(key, required);
    if (member == nullptr) return "";
    if (member->AsString() == nullptr) return Refuse(std::string(key) + " must be a string"), "";
    if (required && member->AsString()->empty()) Refuse(std::string(key) + " must not be empty");
    return *member->AsString();
  }
  std::int64_t Integer(std::string_view key, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> fallback = std::nullopt) {
    const JsonValue* member = Get(key, !fallback.has_value());
    if (member == nullptr) return fallback.value_or(low);
    const std::int64_t* value = member->AsInteger();
    if (value != nullptr && *value >= low && *value <= high) return *value;
    Refuse(std::string(key) + " must be an integer from " + std::to_string(low) + " to " +
           std::to_string(high));
    return low;
  }
  const JsonValue* Get(std::string_view key, bool required) {
    const JsonValue* member = value_.Find(key);
    if (member == nullptr && required) Refuse(std::string(key) + " is missing");
    return member;
  }
  void Refuse(const std::string& what) {
    if (error_.empty()) error_ = where_ + ": " + what;
  }
  const std::string& error() const { return error_; }

 private:
  const JsonValue& value_;
  std::string where_;
  std::string error_;
};

using FaultKind = HostFault::Kind;
struct FaultName {
  std::string_view name;
  FaultKind kind;
};
constexpr std::array<FaultName, 14> kFaultNames = {{{"memory", FaultKind::kMemory},
                                                    {"compute", FaultKind::kCompute},
                                                    {"hang", FaultKind::kHang},
                                                    {"vanish", FaultKind::kVanish},
                                                    {"skip", FaultKind::kSkip},
                                                    {"corruptHost", FaultKind::kCorruptHost},
                                                    {"corruptPeer", FaultKind::kCorruptPeer},
                                                    {"errors", FaultKind::kErrors},
                                                    {"slowMemory", FaultKind::kSlowMemory},
                                                    {"slowHost", FaultKind::kSlowHost},
                                                    {"slowLink", FaultKind::kSlowLink},
                                                    {"slowCompute", FaultKind::kSlowCompute},
                                                    {"linkDown", FaultKind::kLinkDown},
                                                    {"noMemory", FaultKind::kNoMemory}}};
// Calls of the device layer that a device can hang in.
constexpr std::array<std::string_view, 9> kHangCalls = {
    "open", "allocate", "upload", "download", "copy", "launch", "wait", "event", "peer"};
// Rates are written in thousandths of the check's unit: MB/s, GFLOPS, ns.
constexpr double kThousandths = 1000.0;
constexpr std::int64_t kMaxRate = 1'000'000'000'000;

bool IsSlow(FaultKind kind) {
  return kind == FaultKind::kSlowMemory || kind == FaultKind::kSlowHost ||
         kind == FaultKind::kSlowLink || kind == FaultKind::kSlowCompute;
}

std::string KnownFaults() {
  std::string known;
  for (const FaultName& fault : kFaultNames) {
    known += (known.empty() ? "" : ", ") + std::string(fault.name);
  }
  return known;
}

HostFault ReadFault(const JsonValue& value, const DeviceInfo& info, const std::string& where,
                    std::string* error) {
  Members members(value, where);
  HostFault fault;
  const std::string kind = members.Text("kind", true);
  const auto named = std::find_if(kFaultNames.begin(), kFaultNames.end(),
                                  [&](const FaultName& known) { return known.name == kind; });
  if (named == kFaultNames.end()) {
    members.Refuse("unknown kind \"" + kind + "\"; there are " + KnownFaults());
  } else {
    fault.kind = named->kind;
  }
  if (fault.kind == FaultKind::kMemory) {
    members.Only({"kind", "offset", "bit", "stuck"});
    const auto last = static_cast<std::int64_t>(info.memory_bytes) - 8;
    fault.offset =
        static_cast<std::uint64_t>(members.Integer("offset", 0, std::max<std::int64_t>(0, last)));
    fault.bit = static_cast<std::uint32_t>(members.Integer("bit", 0, 63));
    fault.stuck = members.Integer("stuck", 0, 1) == 1;
  } else if (fault.kind == FaultKind::kCompute) {
    members.Only({"kind", "unit"});
    fault.unit = static_cast<std::uint32_t>(members.Integer("unit", 0, info.compute_units - 1));
  } else if (fault.kind == FaultKind::kHang) {
    members.Only({"kind", "call"});
    fault.call = members.Text("call", false);
    if (!fault.call.empty() &&
        std::find(kHangCalls.begin(), kHangCalls.end(), fault.call) == kHangCalls.end()) {
      members.Refuse("call \"" + fault.call + "\" is none of the device layer's");
    }
  } else if (IsSlow(fault.kind)) {
    members.Only({"kind", "percent"});
    fault.percent = static_cast<std::uint32_t>(members.Integer("percent", 1, 99));
  } else if (fault.kind == FaultKind::kErrors) {
    members.Only({"kind", "count"});
    fault.count = static_cast<std::uint64_t>(members.Integer("count", 1, kMaxInteger, 1));
  } else {
    members.Only({"kind"});
  }
  if (error->empty()) *error = members.error();
  return fault;
}

// {"hbm-triad":{"value":2950000,"noisePercent":1},...}: what differs from the architecture's own.
void ReadRates(const JsonValue& value, const std::string& where, HostDeviceSpec* spec,
               std::string* error) {
  if (value.AsObject() == nullptr) {
    if (error->empty()) *error = where + ": must be an object";
    return;
  }
  for (const auto& [check, one] : *value.AsObject()) {
    Members members(one, where + "." + check);
    members.Only({"value", "noisePercent"});
    if (!spec->rates.contains(check)) members.Refuse("is no check that measures a rate");
    HostRate& rate = spec->rates[check];
    rate.value = static_cast<double>(members.Integer("value", 1, kMaxRate)) / kThousandths;
    rate.noise_percent = static_cast<double>(
        members.Integer("noisePercent", 0, 50, static_cast<std::int64_t>(rate.noise_percent)));
    if (error->empty()) *error = members.error();
  }
}

HostDeviceSpec ReadDevice(const JsonValue& value, const std::string& where, std::string* error) {
  Members members(value, where);
  members.Only({"id", "vendor", "name", "arch", "computeUnits", "memoryBytes", "pciAddress",
                "faults", "rates"});
  HostDeviceSpec spec;
  spec.info.id = members.Text("id", true);
  spec.info.vendor = members.Text("vendor", true);
  if (spec.info.vendor != "nvidia" && spec.info.vendor != "amd") {
    members.Refuse("vendor must be nvidia or amd");
  }
  spec.info.name = members.Text("name", false);
  spec.info.arch = members.Text("arch", false);
  spec.info.pci_address = members.Text("pciAddress", false);
  spec.info.compute_units =
      static_cast<std::uint32_t>(members.Integer("computeUnits", 1, kMaxUnits));
  spec.info.memory_bytes =
      static_cast<std::uint64_t>(members.Integer("memoryBytes", 1 << 20, kMaxInteger));
  spec.rates = DefaultRates(spec.info);
  if (const JsonValue* rates = members.Get("rates", false)) {
    ReadRates(*rates, where + ".rates", &spec, error);
  }
  const JsonValue* faults = members.Get("faults", false);
  if (faults != nullptr && faults->AsArray() == nullptr) members.Refuse("faults must be a list");
  if (error->empty()) *error = members.error();
  if (!error->empty() || faults == nullptr) return spec;
  for (std::size_t i = 0; i < faults->AsArray()->size(); ++i) {
    spec.faults.push_back(ReadFault((*faults->AsArray())[i], spec.info,
                                    where + ".faults[" + std::to_string(i) + "]", error));
  }
  return spec;
}

std::string DuplicateId(const std::vector<HostDeviceSpec>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (MatchesId(devices[j].info, devices[i].info.id) ||
          MatchesId(devices[j].info, devices[i].info.pci_address)) {
        return "devices[" + std::to_string(i) + "]: id " + devices[i].info.id +
               " or its PCI address is there twice";
      }
    }
  }
  return "";
}

DeviceError Corrupt(const std::string& name, const std::string& what) {
  return DeviceError{DeviceErrorCode::kFailed, "machine description " + name + ": " + what};
}

}  // namespace

Outcome<std::vector<HostDeviceSpec>> ParseMachine(std::string_view text, const std::string& name) {
  std::string error;
  const std::optional<JsonValue> root = ParseJson(text, &error);
  if (!root) return Corrupt(name, error);
  Members members(*root, "top level");
  members.Only({"simulated", "devices"});
  const JsonValue* simulated = members.Get("simulated", true);
  if (simulated != nullptr && (simulated->AsBool() == nullptr || !*simulated->AsBool())) {
    members.Refuse("simulated must be true");
  }
  const JsonValue* list = members.Get("devices", true);
  if (list != nullptr && list->AsArray() == nullptr) members.Refuse("devices must be a list");
  if (!members.error().empty()) return Corrupt(name, members.error());
  if (list->AsArray()->size() > kMaxDevices) {
    return Corrupt(name, "more than " + std::to_string(kMaxDevices) + " devices");
  }
  std::vector<HostDeviceSpec> devices;
  for (std::size_t i = 0; i < list->AsArray()->size(); ++i) {
    devices.push_back(
        ReadDevice((*list->AsArray())[i], "devices[" + std::to_string(i) + "]", &error));
  }
  if (error.empty()) error = DuplicateId(devices);
  if (!error.empty()) return Corrupt(name, error);
  return devices;
}

Outcome<std::vector<HostDeviceSpec>> ReadMachine(const std::string& path) {
  std::error_code problem;
  std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, problem)) file /= "devices.json";
  const std::uintmax_t bytes = std::filesystem::file_size(file, problem);
  if (problem) return Corrupt(file.string(), "cannot be read: " + problem.message());
  if (bytes > kMaxFileBytes) return Corrupt(file.string(), "larger than 4 MiB");
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream || text.str().size() != bytes) return Corrupt(file.string(), "cannot be read");
  return ParseMachine(text.str(), file.string());
}

}  // namespace bimetal::kernels
