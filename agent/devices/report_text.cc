#include "agent/devices/report_text.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "agent/devices/device_fields.h"
#include "agent/devices/root_files.h"

namespace bimetal::agent {
namespace {

constexpr char kSeparator = '\t';

std::string Escape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '%' || c == '=' || c == ';') {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 0xf];
    } else {
      out += c;
    }
  }
  return out;
}

std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      if (const auto byte = ParseUnsigned(text.substr(i + 1, 2), 16)) {
        out += static_cast<char>(*byte);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string ValueText(const std::string& value) { return Escape(value); }
std::string ValueText(std::int64_t value) { return std::to_string(value); }
std::string ValueText(bool value) { return value ? "true" : "false"; }
std::string ValueText(const std::map<std::string, std::string>& value) {
  std::string out;
  for (const auto& [name, text] : value) out += Escape(name) + "=" + Escape(text) + ";";
  return out;
}
std::string ValueText(const std::map<std::string, std::int64_t>& value) {
  std::string out;
  for (const auto& [name, n] : value) out += Escape(name) + "=" + std::to_string(n) + ";";
  return out;
}
std::string ValueText(const std::vector<std::string>& value) {
  std::string out;
  for (const std::string& text : value) out += Escape(text) + ";";
  return out;
}
std::string ValueText(const std::vector<DeviceLink>& value) {
  std::string out;
  for (const DeviceLink& link : value) {
    out += Escape(link.kind) + "=" + Escape(link.peer) + "=" + std::to_string(link.count) + "=" +
           std::to_string(link.active) + ";";
  }
  return out;
}
std::string ValueText(const std::vector<GpuProcess>& value) {
  std::string out;
  for (const GpuProcess& process : value) {
    out += std::to_string(process.pid) + "=" + std::to_string(process.memory_bytes) + ";";
  }
  return out;
}

bool ParseValue(std::string_view text, std::string& out) {
  out = Unescape(text);
  return true;
}
bool ParseValue(std::string_view text, std::int64_t& out) {
  const auto value = ParseSigned(text);
  if (value) out = *value;
  return value.has_value();
}
bool ParseValue(std::string_view text, bool& out) {
  out = text == "true";
  return out || text == "false";
}
bool ParseValue(std::string_view text, std::map<std::string, std::string>& out) {
  for (const std::string_view pair : Split(text, ';')) {
    if (pair.empty()) continue;
    const auto at = pair.find('=');
    if (at == std::string_view::npos) return false;
    out[Unescape(pair.substr(0, at))] = Unescape(pair.substr(at + 1));
  }
  return true;
}

bool ParseValue(std::string_view text, std::map<std::string, std::int64_t>& out) {
  for (const std::string_view pair : Split(text, ';')) {
    if (pair.empty()) continue;
    const auto parts = Split(pair, '=');
    const auto number = parts.size() == 2 ? ParseSigned(parts[1]) : std::nullopt;
    if (!number) return false;
    out[Unescape(parts[0])] = *number;
  }
  return true;
}
bool ParseValue(std::string_view text, std::vector<std::string>& out) {
  for (const std::string_view one : Split(text, ';')) {
    if (!one.empty()) out.push_back(Unescape(one));
  }
  return true;
}
bool ParseValue(std::string_view text, std::vector<DeviceLink>& out) {
  for (const std::string_view one : Split(text, ';')) {
    if (one.empty()) continue;
    const auto parts = Split(one, '=');
    if (parts.size() != 4) return false;
    const auto count = ParseSigned(parts[2]);
    const auto active = ParseSigned(parts[3]);
    if (!count || !active) return false;
    out.push_back({Unescape(parts[0]), Unescape(parts[1]), *count, *active});
  }
  return true;
}
bool ParseValue(std::string_view text, std::vector<GpuProcess>& out) {
  for (const std::string_view one : Split(text, ';')) {
    if (one.empty()) continue;
    const auto parts = Split(one, '=');
    if (parts.size() != 2) return false;
    const auto pid = ParseSigned(parts[0]);
    const auto bytes = ParseSigned(parts[1]);
    if (!pid || !bytes) return false;
    out.push_back({*pid, *bytes});
  }
  return true;
}

template <class T>
std::string ReadingText(const Reading<T>& reading) {
  const char state = reading.known() ? 'k' : reading.state == Known::kUnknown ? 'u' : 'e';
  std::string out(1, state);
  out += kSeparator;
  if (reading.known()) out += ValueText(reading.value);
  return out + kSeparator + Escape(reading.why);
}

// False: not a reading; `out` is then left as it was.
template <class T>
bool ParseReading(std::string_view state, std::string_view value, std::string_view why,
                  Reading<T>& out) {
  Reading<T> reading;
  reading.why = Unescape(why);
  if (state == "k") {
    reading.state = Known::kKnown;
    if (!ParseValue(value, reading.value)) return false;
  } else if (state == "u" || state == "e") {
    reading.state = state == "u" ? Known::kUnknown : Known::kError;
  } else {
    return false;
  }
  out = std::move(reading);
  return true;
}

bool ParseDeviceField(Device& device, const std::vector<std::string_view>& parts) {
  if (parts.size() == 3 && parts[1] == "node") {
    device.device_nodes.push_back(Unescape(parts[2]));
    return true;
  }
  if (parts.size() != 5) return false;
  bool done = false;
  VisitReadings(
      [&](std::string_view name, auto& reading) {
        if (name == parts[1]) done = ParseReading(parts[2], parts[3], parts[4], reading);
      },
      device);
  return done;
}

// A field of the telemetry of the last device.
bool ParseTelemetryField(SourceReport& report, const std::vector<std::string_view>& parts) {
  if (parts.size() != 5) return false;
  bool done = false;
  VisitTelemetry(
      [&](std::string_view name, auto& reading) {
        if (name == parts[1]) done = ParseReading(parts[2], parts[3], parts[4], reading);
      },
      report.telemetry[report.devices.back().id.value]);
  return done;
}

bool ParseDeviceStart(const std::vector<std::string_view>& parts, SourceReport& report) {
  if (parts.size() != 4) return false;
  Device device;
  if (parts[1] != "nvidia" && parts[1] != "amd") return false;
  device.vendor = parts[1] == "nvidia" ? Vendor::kNvidia : Vendor::kAmd;
  device.id.value = Unescape(parts[2]);
  const auto index = ParseSigned(parts[3]);
  if (!index || *index < -1 || *index > 1'000'000 || device.id.value.empty()) return false;
  device.index = static_cast<int>(*index);
  report.devices.push_back(std::move(device));
  return true;
}

bool ParseFinding(const std::vector<std::string_view>& parts, SourceReport& report) {
  if (parts.size() != 10) return false;
  Finding finding{Unescape(parts[1]), Severity::kError,   Unescape(parts[3]),
                  Unescape(parts[4]), Unescape(parts[5]), Unescape(parts[6])};
  if (parts[2] == "info") finding.severity = Severity::kInfo;
  if (parts[2] == "warning") finding.severity = Severity::kWarning;
  if (parts[7] == "Cordon") finding.effect = Effect::kCordon;
  if (parts[7] == "Revalidate") finding.effect = Effect::kRevalidate;
  finding.vendor = Unescape(parts[8]);
  finding.documentation = Unescape(parts[9]);
  report.findings.push_back(std::move(finding));
  return true;
}

bool ParseLine(std::string_view line, ParsedReport& out) {
  const auto parts = Split(line, kSeparator);
  if (parts[0] == "end" && parts.size() == 1) return out.complete = true;
  if (parts[0] == "simulated" && parts.size() == 1) return out.report.simulated = true;
  if (parts[0] == "step" && parts.size() == 2) {
    out.last_step = Unescape(parts[1]);
    return true;
  }
  if (parts[0] == "device") return ParseDeviceStart(parts, out.report);
  if (parts[0] == "finding") return ParseFinding(parts, out.report);
  if (parts[0] == "field" && !out.report.devices.empty()) {
    return ParseDeviceField(out.report.devices.back(), parts);
  }
  if (parts[0] == "telemetry" && !out.report.devices.empty()) {
    return ParseTelemetryField(out.report, parts);
  }
  if (parts[0] == "fact" && parts.size() == 5) {
    return ParseReading(parts[2], parts[3], parts[4], out.report.facts[Unescape(parts[1])]);
  }
  return false;
}

}  // namespace

std::string StepLine(std::string_view step) { return "step\t" + Escape(step) + "\n"; }

std::string DeviceText(const Device& device) {
  std::string out = "device\t" + std::string(VendorName(device.vendor)) + kSeparator +
                    Escape(device.id.value) + kSeparator + std::to_string(device.index) + "\n";
  VisitReadings(
      [&](std::string_view name, const auto& reading) {
        out += "field\t" + std::string(name) + kSeparator + ReadingText(reading) + "\n";
      },
      device);
  for (const std::string& node : device.device_nodes) out += "field\tnode\t" + Escape(node) + "\n";
  return out;
}

std::string TelemetryText(const Telemetry& telemetry) {
  std::string out;
  VisitTelemetry(
      [&](std::string_view name, const auto& reading) {
        out += "telemetry\t" + std::string(name) + kSeparator + ReadingText(reading) + "\n";
      },
      telemetry);
  return out;
}

std::string ReportText(const SourceReport& report) {
  std::string out;
  if (report.simulated) out += "simulated\n";
  for (const auto& [name, reading] : report.facts) {
    out += "fact\t" + Escape(name) + kSeparator + ReadingText(reading) + "\n";
  }
  for (const Device& device : report.devices) {
    out += DeviceText(device);
    const auto telemetry = report.telemetry.find(device.id.value);
    if (telemetry != report.telemetry.end()) out += TelemetryText(telemetry->second);
  }
  for (const Finding& f : report.findings) {
    out += "finding";
    for (const std::string_view part :
         {std::string_view(f.code), SeverityName(f.severity), std::string_view(f.device),
          std::string_view(f.evidence), std::string_view(f.remedy), std::string_view(f.event),
          EffectName(f.effect), std::string_view(f.vendor), std::string_view(f.documentation)}) {
      out += kSeparator + Escape(part);
    }
    out += "\n";
  }
  return out + "end\n";
}

ParsedReport ParseReportText(std::string_view text) {
  ParsedReport out;
  for (const std::string_view line : Lines(text)) {
    if (!ParseLine(line, out)) ++out.bad_lines;
  }
  return out;
}

}  // namespace bimetal::agent
