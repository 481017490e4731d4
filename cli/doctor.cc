#include "cli/doctor.h"

#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "agent/devices/root_files.h"
#include "agent/diagnosis/rules.h"
#include "cli/table.h"
#include "cli/text.h"

namespace bimetal::cli {
namespace {

using agent::Finding;
using agent::Severity;

constexpr std::array<std::string_view, 3> kSeverities = {"Info", "Warning", "Critical"};
constexpr std::array<const char*, 3> kColors = {"\x1b[36m", "\x1b[33m", "\x1b[1;31m"};
constexpr const char* kPlain = "\x1b[0m";

std::size_t Rank(Severity severity) { return static_cast<std::size_t>(severity); }

std::string_view StepOf(const Finding& finding) {
  const agent::Rule* rule = agent::FindRule(finding.code, finding.vendor);
  return rule == nullptr ? std::string_view("-") : agent::StepName(rule->step);
}

template <class T>
std::string Known(const agent::Reading<T>& reading) {
  if (!reading.known()) return "?";
  if constexpr (std::is_same_v<T, std::string>)
    return reading.value;
  else
    return std::to_string(reading.value);
}

std::string Memory(const agent::Reading<std::int64_t>& bytes) {
  if (!bytes.known()) return "?";
  return std::to_string(bytes.value / (1024 * 1024)) + " MiB";
}

std::string Health(const agent::Reading<bool>& healthy) {
  if (!healthy.known()) return "unknown";
  return healthy.value ? "healthy" : "unhealthy";
}

std::string DeviceTable(const std::vector<agent::Device>& devices) {
  if (devices.empty()) return {};
  Table table{{"DEVICE", "VENDOR", "MODEL", "ARCH", "MEMORY", "PCI", "DRIVER", "HEALTH"}, {}};
  for (const agent::Device& device : devices) {
    table.rows.push_back(
        {{device.id.value, std::string(agent::VendorName(device.vendor)), Known(device.model),
          Known(device.architecture), Memory(device.memory_bytes), Known(device.pci_address),
          Known(device.driver), Health(device.healthy)},
         device.healthy.known() && device.healthy.value ? "" : device.healthy.why});
  }
  return RenderTable(table) + "\n";
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : agent::Lines(text)) lines.emplace_back(line);
  return lines;
}

// The row with its first word coloured, if wanted.
std::string Row(const std::string& line, const Finding& finding, bool color) {
  if (!color) return line + "\n";
  const std::size_t word = kSeverities[Rank(finding.severity)].size();
  return kColors[Rank(finding.severity)] + line.substr(0, word) + kPlain + line.substr(word) + "\n";
}

std::string Detail(const char* label, const std::string& text) {
  const std::string line = OneLine(text);
  return line.empty() ? std::string() : "  " + std::string(label) + "  " + line + "\n";
}

std::string FindingTable(const std::vector<Finding>& findings, bool color) {
  if (findings.empty()) return {};
  Table table{{"SEVERITY", "CODE", "WHERE", "VENDOR", "DEVICE", "EFFECT"}, {}};
  for (const Finding& finding : findings) {
    table.rows.push_back({{std::string(kSeverities[Rank(finding.severity)]), finding.code,
                           std::string(StepOf(finding)), finding.vendor, finding.device,
                           std::string(agent::EffectName(finding.effect))}});
  }
  const auto lines = LinesOf(RenderTable(table));
  std::string out = lines.at(0) + "\n";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    out += Row(lines.at(i + 1), findings[i], color);
    out += Detail("saw", findings[i].evidence);
    out += Detail("do ", findings[i].remedy);
    out += Detail("see", findings[i].documentation);
  }
  return out + "\n";
}

std::array<std::size_t, 3> CountsOf(const std::vector<Finding>& findings) {
  std::array<std::size_t, 3> counts{};
  for (const Finding& finding : findings) ++counts[Rank(finding.severity)];
  return counts;
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : OneLine(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// "name": "text", "name": "text"
std::string Members(const std::vector<std::pair<std::string_view, std::string>>& members) {
  std::string out;
  for (const auto& [name, value] : members) {
    out += (out.empty() ? "\"" : ", \"") + std::string(name) + "\": " + Quote(value);
  }
  return out;
}

std::string Array(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "\n    " : ",\n    ") + item;
  return items.empty() ? "[]" : "[" + out + "\n  ]";
}

std::string DeviceJson(const agent::Device& device) {
  // A field that is not known is left out, never made up.
  std::vector<std::pair<std::string_view, std::string>> members = {
      {"id", device.id.value},
      {"vendor", std::string(agent::VendorName(device.vendor))},
      {"health", Health(device.healthy)}};
  if (!device.healthy.why.empty()) members.emplace_back("healthReason", device.healthy.why);
  const auto add = [&](std::string_view name, const auto& reading) {
    if (reading.known()) members.emplace_back(name, Known(reading));
  };
  add("model", device.model);
  add("architecture", device.architecture);
  add("pciAddress", device.pci_address);
  add("driver", device.driver);
  add("partition", device.partition);
  std::string out = "{" + Members(members);
  if (device.memory_bytes.known()) out += ", \"memoryBytes\": " + Known(device.memory_bytes);
  return out + "}";
}

std::string FindingJson(const Finding& finding) {
  return "{" +
         Members({{"code", finding.code},
                  {"severity", std::string(kSeverities[Rank(finding.severity)])},
                  {"effect", std::string(agent::EffectName(finding.effect))},
                  {"step", std::string(StepOf(finding))},
                  {"vendor", finding.vendor},
                  {"device", finding.device},
                  {"evidence", finding.evidence},
                  {"remedy", finding.remedy},
                  {"documentation", finding.documentation},
                  {"event", finding.event}}) +
         "}";
}

std::string Summary(const Examination& seen) {
  const auto counts = CountsOf(seen.diagnosis.findings);
  const bool any_device = !seen.inventory.devices.empty();
  if (counts[1] + counts[2] == 0) {
    return std::string(any_device ? "Nothing is wrong." : "No GPU is here, and nothing is wrong.") +
           (counts[0] == 0 ? "" : " " + std::to_string(counts[0]) + " note(s).") + "\n";
  }
  return std::to_string(counts[2]) + " critical, " + std::to_string(counts[1]) + " warning(s), " +
         std::to_string(counts[0]) + " note(s). Begin with the first.\n";
}

}  // namespace

agent::Inventory ReadDevicesInProbe(const std::string& root) {
  agent::InventoryOptions options;
  options.kernel_log = false;  // the diagnosis reads it
  options.probe.total = Seconds(10);
  // The machine's own library may lie where only the loader finds it; of another tree never.
  options.probe.system_library = root == "/" && !agent::RootFiles(root).Exists("simulated");
  return agent::ReadInventory(root, options);
}

bool WantsColor(Color color, bool automatic) {
  return color == Color::kAlways || (color == Color::kAuto && automatic);
}

int ExitStatusOf(const agent::Diagnosis& diagnosis) {
  const auto counts = CountsOf(diagnosis.findings);
  return counts[1] + counts[2] == 0 ? kExitSuccess : kExitFindings;
}

std::string RenderExamination(const Examination& seen, bool color) {
  std::string out = "Machine:  " + OneLine(seen.root) + "  kernel " +
                    OneLine(Known(seen.inventory.kernel)) +
                    (seen.inventory.simulated ? "  (simulated)" : "") + "\n\n";
  out += DeviceTable(seen.inventory.devices);
  out += FindingTable(seen.diagnosis.findings, color);
  return out + Summary(seen);
}

std::string ExaminationJson(const Examination& seen) {
  std::vector<std::string> devices;
  for (const agent::Device& device : seen.inventory.devices) devices.push_back(DeviceJson(device));
  std::vector<std::string> findings;
  for (const Finding& finding : seen.diagnosis.findings) findings.push_back(FindingJson(finding));
  std::vector<std::string> not_seen;
  for (const std::string& part : seen.diagnosis.not_seen) not_seen.push_back(Quote(part));
  const int status = ExitStatusOf(seen.diagnosis);
  return "{\n  " + Members({{"root", seen.root}, {"kernel", Known(seen.inventory.kernel)}}) +
         ",\n  \"simulated\": " + (seen.inventory.simulated ? "true" : "false") +
         ",\n  \"healthy\": " + (status == kExitSuccess ? "true" : "false") +
         ",\n  \"devices\": " + Array(devices) + ",\n  \"findings\": " + Array(findings) +
         ",\n  \"notSeen\": " + Array(not_seen) + "\n}\n";
}

Result<Answer> RunDoctor(const CommandLine& line, bool terminal, const ReadDevices& read) {
  const std::string root = line.root.empty() ? "/" : line.root;
  if (const std::string why = agent::WhyBlind(root); !why.empty()) {
    return Fail(ErrorCode::kNotFound, "cannot look: " + why);
  }
  Examination seen;
  seen.root = root;
  seen.inventory = read(root);
  agent::DiagnoseOptions options;
  options.open_nodes = root == "/";
  seen.diagnosis = agent::Diagnose(root, seen.inventory, options);
  Answer answer;
  answer.out = line.output == Output::kJson
                   ? ExaminationJson(seen)
                   : RenderExamination(seen, WantsColor(line.color, terminal));
  answer.exit_status = ExitStatusOf(seen.diagnosis);
  return answer;
}

}  // namespace bimetal::cli
