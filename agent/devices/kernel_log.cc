#include "agent/devices/kernel_log.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "agent/devices/data_tables.h"
#include "agent/devices/nvidia/proc.h"
#include "agent/devices/root_files.h"
#include "agent/devices/sha256.h"
#include "agent/diagnosis/csv.h"
#include "agent/diagnosis/rules.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxFindings = 64;
constexpr std::size_t kMaxEvidence = 300;
constexpr std::size_t kMaxRecord = 4096;
constexpr double kResetPatience = 120;  // seconds; a reset takes seconds, its give-up a minute

constexpr std::string_view kNvidiaWord = "NVRM:";
constexpr std::string_view kXidWord = "NVRM: Xid (";

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The head of a /dev/kmsg record, "6,1234,5678,-"; empty where the line is no such record.
std::string_view KmsgHead(std::string_view line) {
  const auto semicolon = line.find(';');
  const auto comma = line.find(',');
  if (semicolon == std::string_view::npos || comma == std::string_view::npos || comma > semicolon) {
    return {};
  }
  const std::string_view head = line.substr(0, semicolon);
  const std::string_view rest = head.substr(comma + 1);
  return IsDigits(head.substr(0, comma)) && IsDigits(rest.substr(0, rest.find(',')))
             ? head
             : std::string_view();
}

// "6,1234,5678,-;text": the sequence number; else a hash of the line.
std::string EventKey(std::string_view line) {
  std::string_view head = KmsgHead(line);
  if (!head.empty()) {
    head.remove_prefix(head.find(',') + 1);
    return "kmsg-" + std::string(head.substr(0, head.find(',')));
  }
  return "line-" + Sha256Hex(line).substr(0, 16);
}

// Seconds since boot, of a /dev/kmsg head (microseconds) or of "[ 8390.785329] ".
double SecondsOf(std::string_view line) {
  std::string_view head = KmsgHead(line);
  double value = -1;
  if (!head.empty()) {
    for (int i = 0; i < 2; ++i) {
      const auto comma = head.find(',');
      if (comma == std::string_view::npos) return -1;
      head.remove_prefix(comma + 1);
    }
    const auto micros = ParseUnsigned(head.substr(0, head.find(',')));
    return micros ? static_cast<double>(*micros) / 1e6 : -1;
  }
  if (!line.starts_with('[')) return -1;
  line.remove_prefix(1);
  const std::string_view number = Trim(line.substr(0, line.find(']')));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  return error == std::errc{} && end == number.data() + number.size() ? value : -1;
}

// The message without what the log puts before it.
std::string_view Message(std::string_view line) {
  if (const auto head = KmsgHead(line); !head.empty()) return Trim(line.substr(head.size() + 1));
  // A stamp: seconds or a date, unlike "[drm:".
  const bool stamped = line.size() > 1 && line[0] == '[' && !(line[1] >= 'a' && line[1] <= 'z');
  if (stamped) {
    const auto close = line.find("] ");
    if (close != std::string_view::npos) line.remove_prefix(close + 2);
  }
  const auto kernel = line.find("kernel: ");
  if (kernel != std::string_view::npos && kernel < 128) line.remove_prefix(kernel + 8);
  return Trim(line);
}

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Length of a PCI address (0000:e3:00.0, e3:00.0, 0000:e3:00) at the start of `text`; 0 for none.
std::size_t AddressLength(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && end < 16 && (IsHex(text[end]) || text[end] == ':')) ++end;
  const std::string_view head = text.substr(0, end);
  const auto colons = std::count(head.begin(), head.end(), ':');
  const bool function = end + 1 < text.size() && text[end] == '.' && text[end + 1] >= '0' &&
                        text[end + 1] <= '7' && (end + 2 == text.size() || !IsHex(text[end + 2]));
  if (colons == 2 && head.find(':') >= 4 && end >= 10) return function ? end + 2 : end;
  return colons == 1 && end == 5 && function ? end + 2 : 0;
}

// Every PCI address of a message, in full.
std::vector<std::string> AddressesOf(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!IsHex(text[i]) || (i > 0 && (IsHex(text[i - 1]) || text[i - 1] == '-'))) continue;
    std::size_t length = AddressLength(text.substr(i));
    if (length == 0) continue;
    while (length > 0 && text[i + length - 1] == ':') --length;
    std::string address = NormalPciAddress(text.substr(i, length));
    if (address.find(':') == 2) address.insert(0, "0000:");
    out.push_back(std::move(address));
    i += length;
  }
  return out;
}

bool HasInOrder(std::string_view text, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    const auto at = text.find(piece);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + piece.size());
  }
  return true;
}

// "1002:67ef" behind "device " or "DID ".
std::string PciIdOf(std::string_view text) {
  const auto at = text.find("skipped device ");
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + 15);
  if (rest.size() < 9 || rest[4] != ':') return {};
  for (std::size_t i = 0; i < 9; ++i) {
    if (i != 4 && !IsHex(rest[i])) return {};
  }
  std::string id(rest.substr(0, 9));
  std::transform(id.begin(), id.end(), id.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return id;
}

// Where the driver's own part of the message begins; npos where it is not the driver's.
std::size_t DriverAt(const KernelLineRule& rule, std::string_view text) {
  if (rule.driver.empty() || rule.driver == "gpu") return 0;
  if (rule.driver == "kfd") {
    const auto at = text.find("kfd");
    return at;
  }
  if (rule.driver == kNvidiaWord) return text.find(kNvidiaWord);
  for (auto at = text.find("amdgpu "); at != std::string_view::npos;
       at = text.find("amdgpu ", at + 1)) {
    if (AddressLength(text.substr(at + 7)) > 0) return at;
  }
  return std::string_view::npos;
}

bool Fits(const KernelLineRule& rule, std::string_view text) {
  const auto at = DriverAt(rule, text);
  if (at == std::string_view::npos || !HasInOrder(text.substr(at), rule.pieces)) return false;
  return std::none_of(rule.unless.begin(), rule.unless.end(), [&](const std::string& piece) {
    return text.find(piece) != std::string_view::npos;
  });
}

const std::vector<KernelLineRule>& LineRules() {
  static const auto kRules = ParseKernelLineRules(KernelLinesCsv());
  return kRules;
}

// The state in "... to 0x4 (Drain and Reset)".
std::string RecoveryState(std::string_view text) {
  const auto open = text.rfind('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

void SetXidMeaning(KernelEvent& event) {
  const XidMeaning meaning = FindXid(event.xid);
  event.remedy = meaning.remedy;
  switch (meaning.kind) {
    case XidClass::kFatal:
      event.code = "XidFatal";
      break;
    case XidClass::kContained:
      event.code = "XidContained";
      break;
    case XidClass::kLink:
      event.code = event.text.find(" Fatal ") != std::string::npos ? "XidLinkFatal" : "XidLink";
      break;
    case XidClass::kRecovery: {
      const std::string state = RecoveryState(event.text);
      event.code = state == "None" ? "recovery_ended" : "XidRecovery";
      if (!state.empty()) event.remedy = "the driver asks for: " + state;
      break;
    }
    case XidClass::kApplication:
      event.code = "XidApplication";
      break;
    case XidClass::kNote:
      break;
  }
}

// NVRM: Xid (PCI:0000:18:00): 79, ... ; old drivers print no "PCI:".
std::optional<KernelEvent> ParseXid(std::string_view text) {
  const auto at = text.find(kXidWord);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + kXidWord.size());
  if (rest.starts_with("PCI:")) rest.remove_prefix(4);
  const auto close = rest.find("): ");
  if (close == std::string_view::npos || close > 32) return std::nullopt;
  KernelEvent event;
  event.vendor = Vendor::kNvidia;
  event.pci_address = NormalPciAddress(rest.substr(0, close));
  rest.remove_prefix(close + 3);
  const auto number = ParseUnsigned(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!number || *number == 0 || *number > 100'000) return std::nullopt;
  event.xid = static_cast<int>(*number);
  event.text = std::string(Trim(text.substr(at)).substr(0, kMaxEvidence));
  SetXidMeaning(event);
  return event;
}

std::optional<KernelEvent> ParseByTable(std::string_view text) {
  for (const KernelLineRule& rule : LineRules()) {
    if (!Fits(rule, text)) continue;
    KernelEvent event;
    event.code = rule.code;
    event.vendor = rule.vendor;
    const auto at = std::min(DriverAt(rule, text), text.size());
    const auto addresses = AddressesOf(text.substr(at));
    if (!addresses.empty()) event.pci_address = addresses.front();
    event.pci_id = PciIdOf(text);
    event.text = std::string(text.substr(rule.driver == "kfd" ? 0 : at).substr(0, kMaxEvidence));
    return event;
  }
  return std::nullopt;
}

const Device* DeviceAt(const std::string& address, const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    if (device.pci_address.known() && device.pci_address.value == address) return &device;
  }
  return nullptr;
}

// Whom the record is about: the first of its addresses that is a device; false where it is a
// message of the bus and of no GPU of the node.
bool FindSubject(KernelEvent& event, const std::vector<Device>& devices, std::string& subject) {
  auto addresses = AddressesOf(event.text);
  if (!event.pci_address.empty()) addresses.insert(addresses.begin(), event.pci_address);
  for (const std::string& address : addresses) {
    const Device* device = DeviceAt(address, devices);
    if (device == nullptr) continue;
    event.vendor = device->vendor;
    subject = device->parent.known() ? device->parent.value : device->id.value;
    return true;
  }
  if (!event.pci_id.empty()) subject = event.pci_id;
  if (event.vendor) {
    if (!event.pci_address.empty()) subject = event.pci_address;
    return true;
  }
  const std::string_view text = event.text;
  if (text.starts_with("nvidia ") || text.starts_with("amdgpu ")) {
    event.vendor = text.starts_with("nvidia") ? Vendor::kNvidia : Vendor::kAmd;
    subject = event.pci_address;
    return true;
  }
  return event.code == "PcieLinkDown";
}

Finding FindingOf(const KernelEvent& event, const std::string& subject) {
  Finding finding;
  finding.code = event.code;
  finding.device = subject;
  finding.evidence = event.text;
  finding.remedy = event.remedy;
  finding.event = event.key;
  if (event.vendor) finding.vendor = std::string(VendorName(*event.vendor));
  ApplyRule(finding);
  return finding;
}

// A line of the kernel's own buffer without its "<4>".
std::string_view WithoutLevel(std::string_view line) {
  if (!line.starts_with('<')) return line;
  const auto close = line.find('>');
  return close <= 4 && IsDigits(line.substr(1, close - 1)) ? line.substr(close + 1) : line;
}

// "[   12.345678] " at the start of a line; else empty.
std::string_view StampOf(std::string_view line) {
  if (SecondsOf(line) < 0 || !line.starts_with('[')) return {};
  return line.substr(0, line.find(']') + 1);
}

// A record whose line breaks were escaped, as one line.
std::string Unescaped(std::string_view raw) {
  constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"#012NVRM:", ""}, {"\\x0aNVRM:", ""}, {"#012", " "}, {"\\x0a", " "}};
  std::string line(raw);
  for (const auto& [escaped, plain] : kEscapes) {
    for (auto at = line.find(escaped); at != std::string::npos; at = line.find(escaped, at)) {
      line.replace(at, escaped.size(), plain);
    }
  }
  return line;
}

bool IsFact(const std::string& code) {
  return code.empty() || (code.front() >= 'a' && code.front() <= 'z');
}

}  // namespace

std::vector<KernelLineRule> ParseKernelLineRules(std::string_view csv) {
  const auto split = [](std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
      const auto end = text.find(separator);
      if (end != 0) parts.emplace_back(text.substr(0, end));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    return parts;
  };
  std::vector<KernelLineRule> rules;
  for (const std::string_view line : CsvLines(csv)) {
    const auto fields = SplitCsv(line);
    if (fields.size() != 5 || fields[0].empty() || fields[3].empty()) continue;
    KernelLineRule rule;
    rule.code = fields[0];
    if (fields[1] == "nvidia") rule.vendor = Vendor::kNvidia;
    if (fields[1] == "amd") rule.vendor = Vendor::kAmd;
    rule.driver = fields[2];
    rule.pieces = split(fields[3], '*');
    rule.unless = split(fields[4], '|');
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::optional<KernelEvent> ParseKernelLine(std::string_view line) {
  line = WithoutLevel(line);
  const std::string_view text = Message(line);
  auto event = ParseXid(text);
  if (!event) event = ParseByTable(text);
  if (!event) return std::nullopt;
  event->key = EventKey(line);
  event->seconds = SecondsOf(line);
  return event;
}

std::vector<std::string> KernelRecords(std::string_view log) {
  std::vector<std::string> records;
  for (std::string_view raw : Lines(log)) {
    raw = WithoutLevel(raw);
    std::string line = Unescaped(raw);
    // Of a message over several lines only the first has the log's prefix, or all have the same.
    std::string_view text = Trim(line);
    const std::string_view stamp = StampOf(text);
    const bool same = !stamp.empty() && !records.empty() && records.back().starts_with(stamp);
    if (same) text = Trim(text.substr(stamp.size()));
    const bool goes_on = text.starts_with(kNvidiaWord) && !text.starts_with(kXidWord) &&
                         !records.empty() && records.back().size() < kMaxRecord &&
                         records.back().find(kNvidiaWord) != std::string::npos &&
                         records.back().find(kXidWord) == std::string::npos &&
                         !std::string_view(records.back()).starts_with(kNvidiaWord);
    if (goes_on) {
      records.back() += " " + std::string(Trim(text.substr(kNvidiaWord.size())));
    } else if (!line.starts_with(' ') || line.find('=') == std::string::npos) {
      // Else: a field of a /dev/kmsg record, " SUBSYSTEM=pci".
      records.push_back(line.substr(0, kMaxRecord));
    }
  }
  return records;
}

std::map<std::string, std::string> KernelFacts(std::string_view log) {
  std::map<std::string, std::string> facts;
  for (const std::string& record : KernelRecords(log)) {
    const auto event = ParseKernelLine(record);
    if (event && !event->code.empty() && IsFact(event->code)) facts[event->code] = event->text;
  }
  return facts;
}

std::vector<Finding> KernelFindings(std::string_view log, const std::vector<Device>& devices) {
  std::map<std::pair<std::string, std::string>, Finding> newest;  // by kind and device
  std::map<std::string, KernelEvent> open_resets;                 // by device
  double last = -1;
  for (const std::string& record : KernelRecords(log)) {
    last = std::max(last, SecondsOf(record));
    auto event = ParseKernelLine(record);
    std::string subject;
    if (!event || !FindSubject(*event, devices, subject)) continue;
    if (event->code == "GpuReset") open_resets[subject] = *event;
    if (event->code == "GpuResetFailed" || event->code == "reset_ended") {
      open_resets.erase(subject);
    }
    // What the driver asks for ends when it says so.
    if (event->code == "recovery_ended") newest.erase({"XidRecovery 154", subject});
    if (IsFact(event->code)) continue;
    const std::string kind = event->code + " " + std::to_string(event->xid);
    newest[{kind, subject}] = FindingOf(*event, subject);
  }
  for (auto& [subject, event] : open_resets) {
    if (event.seconds < 0 || last < event.seconds + kResetPatience) continue;
    event.code = "GpuResetHung";
    newest[{"GpuResetHung 0", subject}] = FindingOf(event, subject);
  }
  std::vector<Finding> findings;
  for (auto& [key, finding] : newest) findings.push_back(std::move(finding));
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  if (findings.size() > kMaxFindings) findings.resize(kMaxFindings);
  return findings;
}

}  // namespace bimetal::agent
