#include "tests/machines/description.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

#include <yaml-cpp/yaml.h>

namespace bimetal::machines {
namespace {

struct KindName {
  std::string_view name;
  Fault::Kind kind;
};
constexpr std::array<KindName, 16> kKinds = {{{"memory", Fault::Kind::kMemory},
                                              {"compute", Fault::Kind::kCompute},
                                              {"hang", Fault::Kind::kHang},
                                              {"vanish", Fault::Kind::kVanish},
                                              {"xid", Fault::Kind::kXid},
                                              {"ecc", Fault::Kind::kEcc},
                                              {"skip", Fault::Kind::kSkip},
                                              {"corruptHost", Fault::Kind::kCorruptHost},
                                              {"corruptPeer", Fault::Kind::kCorruptPeer},
                                              {"errors", Fault::Kind::kErrors},
                                              {"slowMemory", Fault::Kind::kSlowMemory},
                                              {"slowHost", Fault::Kind::kSlowHost},
                                              {"slowLink", Fault::Kind::kSlowLink},
                                              {"slowCompute", Fault::Kind::kSlowCompute},
                                              {"linkDown", Fault::Kind::kLinkDown},
                                              {"noMemory", Fault::Kind::kNoMemory}}};

// Reads the keys of one map; the first error stays.
class Keys {
 public:
  Keys(const YAML::Node& node, std::string where, std::string& error)
      : node_(node), where_(std::move(where)), error_(error) {
    if (!node_.IsMap()) Refuse("", "not a map");
  }

  // To be called last: every key that was not asked for is refused.
  void RefuseOthers() {
    if (!node_.IsMap()) return;
    for (const auto& entry : node_) {
      const auto key = entry.first.as<std::string>();
      if (!asked_.contains(key)) Refuse(key, "unknown key");
    }
  }

  YAML::Node Get(const std::string& key) {
    asked_.insert(key);
    // A key that is missing gives a node that throws when it is asked anything but IsDefined.
    if (node_.IsMap() && node_[key].IsDefined()) return node_[key];
    return YAML::Node(YAML::NodeType::Undefined);
  }

  void Text(const std::string& key, std::string& out, bool required) {
    const YAML::Node value = Get(key);
    if (!value.IsDefined()) {
      if (required) Refuse(key, "missing");
    } else if (!value.IsScalar()) {
      Refuse(key, "not a text");
    } else {
      out = value.Scalar();
    }
  }

  void Integer(const std::string& key, std::int64_t& out, std::int64_t least, std::int64_t most,
               bool required) {
    std::string text;
    Text(key, text, required);
    if (text.empty()) return;
    std::string_view digits = text;
    const bool hex = digits.starts_with("0x");
    if (hex) digits.remove_prefix(2);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, hex ? 16 : 10);
    if (code != std::errc{} || end != digits.data() + digits.size()) {
      Refuse(key, "not a whole number");
    } else if (out < least || out > most) {
      Refuse(key, "not between " + std::to_string(least) + " and " + std::to_string(most));
    }
  }

  void Integer(const std::string& key, int& out, int least, int most, bool required) {
    std::int64_t wide = out;
    Integer(key, wide, least, most, required);
    if (wide >= least && wide <= most) out = static_cast<int>(wide);
  }

  void Refuse(const std::string& key, const std::string& what) {
    if (!error_.empty()) return;
    const std::string dot = where_.empty() || key.empty() ? "" : ".";
    error_ = where_ + dot + key + ": " + what;
  }

  const std::string& where() const { return where_; }

 private:
  const YAML::Node node_;
  std::string where_;
  std::string& error_;
  std::set<std::string> asked_;
};

constexpr std::int64_t kMost = INT64_MAX / 2;

Fault ReadFault(const YAML::Node& node, const std::string& where, std::string& error) {
  Keys keys(node, where, error);
  Fault fault;
  std::string kind;
  keys.Text("kind", kind, true);
  const auto parsed = ParseFaultKind(kind);
  if (parsed) {
    fault.kind = *parsed;
  } else {
    keys.Refuse("kind", parsed.error().message);
  }
  keys.Integer("device", fault.device, 0, 4095, true);
  keys.Integer("offset", fault.offset, 0, kMost, false);
  keys.Integer("bit", fault.bit, 0, 63, false);
  keys.Integer("stuck", fault.stuck, 0, 1, false);
  keys.Integer("unit", fault.unit, 0, 1'000'000, false);
  keys.Integer("code", fault.code, 1, 100'000, false);
  keys.Integer("count", fault.count, 1, 1'000'000, false);
  keys.Integer("percent", fault.percent, 1, 99, false);
  keys.Text("call", fault.call, false);
  keys.Integer("sequence", fault.sequence, 0, kMost, false);
  keys.RefuseOthers();
  return fault;
}

std::vector<Fault> ReadFaults(Keys& keys, std::string& error) {
  std::vector<Fault> faults;
  const YAML::Node list = keys.Get("faults");
  if (!list.IsDefined()) return faults;
  if (!list.IsSequence()) keys.Refuse("faults", "not a list");
  for (std::size_t i = 0; list.IsSequence() && i < list.size(); ++i) {
    faults.push_back(ReadFault(list[i], "faults[" + std::to_string(i) + "]", error));
  }
  return faults;
}

std::map<std::string, std::string> ReadTexts(const YAML::Node& node, Keys& keys,
                                             const std::string& key) {
  std::map<std::string, std::string> out;
  if (!node.IsDefined()) return out;
  if (!node.IsMap()) {
    keys.Refuse(key, "not a map");
    return out;
  }
  for (const auto& entry : node) {
    if (!entry.second.IsScalar()) keys.Refuse(key, "holds a value that is no text");
    if (entry.second.IsScalar()) out[entry.first.Scalar()] = entry.second.Scalar();
  }
  return out;
}

// Addresses either listed, or counted from pciStart in steps of pciStep buses.
void ReadAddresses(Keys& keys, GpuGroup& group) {
  const YAML::Node list = keys.Get("pci");
  for (std::size_t i = 0; list.IsSequence() && i < list.size(); ++i) {
    if (list[i].IsScalar()) group.pci.push_back(list[i].Scalar());
  }
  std::string start;
  int step = 1;
  keys.Text("pciStart", start, false);
  keys.Integer("pciStep", step, 1, 64, false);
  unsigned domain = 0;
  unsigned bus = 0;
  if (group.pci.empty() && std::sscanf(start.c_str(), "%4x:%2x:00.0", &domain, &bus) == 2) {
    for (int i = 0; i < group.count; ++i) {
      const unsigned at = bus + static_cast<unsigned>(i * step);
      std::array<char, 32> text;
      std::snprintf(text.data(), text.size(), "%04x:%02x:00.0", domain + at / 256, at % 256);
      group.pci.emplace_back(text.data());
    }
  }
  if (group.pci.size() != static_cast<std::size_t>(group.count)) {
    keys.Refuse("pci", "needs one address a GPU, or pciStart as 0000:05:00.0");
  }
}

void ReadPartition(Keys& keys, GpuGroup& group, std::string& error) {
  const YAML::Node node = keys.Get("partition");
  if (!node.IsDefined()) return;
  Keys partition(node, keys.where() + ".partition", error);
  partition.Text("compute", group.compute_partition, false);
  partition.Text("memory", group.memory_partition, false);
  partition.Integer("count", group.partitions, 1, 8, false);
  partition.Text("entryName", group.partition_entry, false);
  partition.RefuseOthers();
}

void ReadMig(Keys& keys, GpuGroup& group, std::string& error) {
  const YAML::Node list = keys.Get("mig");
  if (!list.IsDefined()) return;
  if (!list.IsSequence() || list.size() > 8) keys.Refuse("mig", "not a list of at most 8");
  for (std::size_t i = 0; list.IsSequence() && i < list.size(); ++i) {
    Keys one(list[i], keys.where() + ".mig[" + std::to_string(i) + "]", error);
    MigInstance instance;
    one.Text("profile", instance.profile, true);
    one.Integer("memoryBytes", instance.memory_bytes, 1, kMost, true);
    one.Integer("computeUnits", instance.compute_units, 1, 100'000, true);
    one.RefuseOthers();
    group.mig.push_back(instance);
  }
}

void ReadAnswers(Keys& keys, GpuGroup& group, std::string& error) {
  const YAML::Node list = keys.Get("answers");
  if (!list.IsDefined()) return;
  if (!list.IsSequence()) keys.Refuse("answers", "not a list");
  for (std::size_t i = 0; list.IsSequence() && i < list.size(); ++i) {
    Keys one(list[i], keys.where() + ".answers[" + std::to_string(i) + "]", error);
    int device = -1;
    one.Integer("device", device, 0, group.count - 1, false);
    group.answers[device] = ReadTexts(one.Get("values"), one, "values");
    one.RefuseOthers();
  }
}

void ReadRates(Keys& keys, GpuGroup& group, std::string& error) {
  const YAML::Node node = keys.Get("rates");
  if (!node.IsDefined()) return;
  if (!node.IsMap()) {
    keys.Refuse("rates", "not a map");
    return;
  }
  for (const auto& entry : node) {
    const std::string& check = entry.first.Scalar();
    Keys one(entry.second, keys.where() + ".rates." + check, error);
    ClaimedRate rate;
    one.Integer("value", rate.value, 1, 1'000'000'000'000, true);
    one.Integer("noisePercent", rate.noise_percent, 0, 50, false);
    one.RefuseOthers();
    group.rates[check] = rate;
  }
}

GpuGroup ReadGroup(const YAML::Node& node, const std::string& where, std::string& error) {
  Keys keys(node, where, error);
  GpuGroup group;
  keys.Text("vendor", group.vendor, true);
  if (group.vendor != "amd" && group.vendor != "nvidia") keys.Refuse("vendor", "not amd or nvidia");
  keys.Text("model", group.model, true);
  keys.Text("arch", group.arch, true);
  const bool amd = group.vendor == "amd";
  if (!group.arch.starts_with(amd ? "gfx" : "sm_")) keys.Refuse("arch", "not of this vendor");
  keys.Integer("pciDevice", group.pci_device, 1, 0xffff, true);
  keys.Integer("count", group.count, 0, 64, true);
  keys.Integer("computeUnits", group.compute_units, 1, 100'000, true);
  keys.Integer("memoryBytes", group.memory_bytes, 1 << 20, kMost, true);
  keys.Text("driver", group.driver, true);
  keys.Text("runtime", group.runtime, false);
  keys.Text("flavor", group.flavor, false);
  const bool known_flavor =
      group.flavor.empty() || (amd ? group.flavor == "dkms" || group.flavor == "in-tree"
                                   : group.flavor == "open" || group.flavor == "proprietary");
  if (!known_flavor) keys.Refuse("flavor", "not of this vendor");
  if (!amd) keys.Text("toolkit", group.toolkit, false);
  if (!amd) keys.Integer("nvlinks", group.nvlinks, 0, 36, false);
  group.firmware = ReadTexts(keys.Get("firmware"), keys, "firmware");
  ReadAddresses(keys, group);
  const YAML::Node link = keys.Get("link");
  if (link.IsDefined()) {
    Keys one(link, where + ".link", error);
    one.Integer("generation", group.link_generation, 1, 6, false);
    one.Integer("width", group.link_width, 1, 32, false);
    one.RefuseOthers();
  }
  ReadRates(keys, group, error);
  if (amd) ReadPartition(keys, group, error);
  if (!amd) ReadMig(keys, group, error);
  if (!amd) ReadAnswers(keys, group, error);
  keys.RefuseOthers();
  return group;
}

// yaml-cpp throws; its exceptions stop here.
template <class T, class Read>
Result<T> Guarded(std::string_view yaml, Read read) {
  try {
    std::string error;
    T value = read(YAML::Load(std::string(yaml)), error);
    if (!error.empty()) return Fail(ErrorCode::kInvalid, error);
    return value;
  } catch (const YAML::Exception& e) {
    return Fail(ErrorCode::kInvalid, std::string("no YAML: ") + e.what());
  }
}

}  // namespace

std::string_view FaultKindName(Fault::Kind kind) {
  for (const KindName& known : kKinds) {
    if (known.kind == kind) return known.name;
  }
  return "memory";
}

Result<Fault::Kind> ParseFaultKind(std::string_view name) {
  for (const KindName& known : kKinds) {
    if (known.name == name) return known.kind;
  }
  std::string known;
  for (const KindName& one : kKinds) known += (known.empty() ? "" : ", ") + std::string(one.name);
  return Fail(ErrorCode::kInvalid,
              "unknown fault kind '" + std::string(name) + "' (there are " + known + ")");
}

bool IsOfValidationOnly(Fault::Kind kind) { return kind >= Fault::Kind::kSkip; }

int Description::GpuCount() const {
  int count = 0;
  for (const GpuGroup& group : groups) count += group.count;
  return count;
}

Result<Description> ParseDescription(std::string_view yaml) {
  auto parsed = Guarded<Description>(yaml, [](const YAML::Node& root, std::string& error) {
    Keys keys(root, "", error);
    Description out;
    keys.Text("name", out.name, true);
    keys.Text("kernel", out.kernel, false);
    keys.Integer("numaNodes", out.numa_nodes, 1, 16, false);
    const YAML::Node gpus = keys.Get("gpus");
    if (!gpus.IsDefined() || !gpus.IsSequence()) keys.Refuse("gpus", "not a list");
    for (std::size_t i = 0; gpus.IsDefined() && gpus.IsSequence() && i < gpus.size(); ++i) {
      out.groups.push_back(ReadGroup(gpus[i], "gpus[" + std::to_string(i) + "]", error));
    }
    out.faults = ReadFaults(keys, error);
    out.files = ReadTexts(keys.Get("files"), keys, "files");
    for (const auto& [path, text] : out.files) {
      if (path.empty() || path.front() == '/' || path.find("..") != std::string::npos) {
        keys.Refuse("files", "'" + path + "' is no path under the root");
      }
    }
    keys.RefuseOthers();
    return out;
  });
  if (!parsed) return parsed;
  for (const Fault& fault : parsed->faults) BIMETAL_TRY(CheckFault(fault, *parsed));
  return parsed;
}

Result<State> ParseState(std::string_view yaml) {
  return Guarded<State>(yaml, [](const YAML::Node& root, std::string& error) {
    Keys keys(root, "", error);
    State out;
    keys.Text("node", out.node, true);
    keys.Integer("seed", out.seed, 0, kMost, true);
    keys.Integer("boots", out.boots, 1, kMost, true);
    keys.Integer("nextSequence", out.next_sequence, 0, kMost, true);
    out.faults = ReadFaults(keys, error);
    keys.RefuseOthers();
    return out;
  });
}

std::string FormatState(const State& state) {
  std::string out = "# Written by bimetal-machine; a simulated machine.\nnode: \"" + state.node +
                    "\"\nseed: " + std::to_string(state.seed) +
                    "\nboots: " + std::to_string(state.boots) +
                    "\nnextSequence: " + std::to_string(state.next_sequence) + "\n";
  if (!state.faults.empty()) out += "faults:\n";
  for (const Fault& f : state.faults) {
    out += "  - {kind: " + std::string(FaultKindName(f.kind)) +
           ", device: " + std::to_string(f.device) + ", offset: " + std::to_string(f.offset) +
           ", bit: " + std::to_string(f.bit) + ", stuck: " + std::to_string(f.stuck) +
           ", unit: " + std::to_string(f.unit) + ", code: " + std::to_string(f.code) +
           ", count: " + std::to_string(f.count) + ", percent: " + std::to_string(f.percent) +
           ", call: \"" + f.call + "\", sequence: " + std::to_string(f.sequence) + "}\n";
  }
  return out;
}

Status CheckFault(const Fault& fault, const Description& description) {
  int first = 0;
  for (const GpuGroup& group : description.groups) {
    if (fault.device >= first + group.count) {
      first += group.count;
      continue;
    }
    if (fault.kind == Fault::Kind::kMemory && fault.offset > group.memory_bytes - 8) {
      return Fail(ErrorCode::kInvalid, "fault offset " + std::to_string(fault.offset) +
                                           " is beyond the device's memory");
    }
    if (fault.kind == Fault::Kind::kCompute && fault.unit >= group.compute_units) {
      return Fail(ErrorCode::kInvalid, "fault unit " + std::to_string(fault.unit) +
                                           " is beyond the device's compute units");
    }
    if (fault.kind == Fault::Kind::kXid && group.vendor != "nvidia") {
      return Fail(ErrorCode::kInvalid, "only NVIDIA devices have Xids; use ecc for AMD");
    }
    return {};
  }
  return Fail(ErrorCode::kInvalid, "fault names device " + std::to_string(fault.device) +
                                       ", the machine has " +
                                       std::to_string(description.GpuCount()));
}

}  // namespace bimetal::machines
