// bimetal-machine: builds simulated machines and puts faults into them. See README.md beside.

#include <unistd.h>

#include <array>
#include <charconv>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "agent/devices/fingerprint.h"
#include "agent/devices/inventory.h"
#include "agent/devices/probe.h"
#include "tests/machines/machine.h"

namespace {

using bimetal::ErrorCode;
using bimetal::Fail;
using bimetal::Result;
using bimetal::Status;
using bimetal::machines::Fault;
using bimetal::machines::Machine;

constexpr std::string_view kUsage =
    "usage: bimetal-machine build DESCRIPTION.yaml FOLDER [--node NAME] [--seed N] [--nvml FILE]\n"
    "       bimetal-machine fault FOLDER --device N --kind KIND    (README.md lists the kinds)\n"
    "                       [--offset BYTES --bit N --stuck 0|1] [--unit N] [--code N] [--count "
    "N]\n"
    "                       [--percent N] [--call NAME]\n"
    "       bimetal-machine clear FOLDER [--device N] [--kind KIND]\n"
    "       bimetal-machine reboot FOLDER\n"
    "       bimetal-machine list FOLDER\n"
    "       bimetal-machine inventory FOLDER    what the agent reads, of any root folder\n";

struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;
};

Result<Arguments> Parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (!arg.starts_with("--")) {
      out.words.push_back(arg);
    } else if (i + 1 == argc) {
      return Fail(ErrorCode::kInvalid, arg + " needs a value");
    } else {
      out.options[arg.substr(2)] = argv[++i];
    }
  }
  return out;
}

Status OnlyOptions(const Arguments& arguments, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : arguments.options) {
    bool found = false;
    for (const std::string_view one : known) found = found || one == name;
    if (!found) return Fail(ErrorCode::kInvalid, "unknown option --" + name);
  }
  return {};
}

// Sets `out` where the option is there.
Status Number(const Arguments& arguments, const std::string& name, std::int64_t& out) {
  const auto found = arguments.options.find(name);
  if (found == arguments.options.end()) return {};
  const std::string& text = found->second;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (code != std::errc{} || end != text.data() + text.size() || out < 0) {
    return Fail(ErrorCode::kInvalid, "--" + name + ": '" + text + "' is not a whole number");
  }
  return {};
}

// The library beside this program.
std::string DefaultLibrary() {
  std::array<char, 4096> path;
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  const std::string self(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1) + "libbimetal-nvml.so";
}

Status Build(const Arguments& arguments) {
  if (arguments.words.size() != 3) return Fail(ErrorCode::kInvalid, "build needs a file, a folder");
  BIMETAL_TRY(OnlyOptions(arguments, {"node", "seed", "nvml"}));
  std::int64_t seed = 1;
  BIMETAL_TRY(Number(arguments, "seed", seed));
  BIMETAL_TRY_ASSIGN(const std::string yaml, bimetal::machines::ReadFile(arguments.words[1]));
  const auto option = [&](const std::string& name, const std::string& otherwise) {
    const auto found = arguments.options.find(name);
    return found == arguments.options.end() ? otherwise : found->second;
  };
  BIMETAL_TRY_ASSIGN(const Machine machine,
                     Machine::Build(yaml, arguments.words[2], option("node", "simulated"), seed,
                                    option("nvml", DefaultLibrary())));
  std::cout << arguments.words[2] << ": simulated machine " << machine.description().name << ", "
            << machine.Devices().size() << " devices\n";
  return {};
}

Status InjectFault(const Arguments& arguments, Machine& machine) {
  BIMETAL_TRY(OnlyOptions(arguments, {"device", "kind", "offset", "bit", "stuck", "unit", "code",
                                      "count", "percent", "call"}));
  if (!arguments.options.contains("device") || !arguments.options.contains("kind")) {
    return Fail(ErrorCode::kInvalid, "fault needs --device and --kind");
  }
  Fault fault;
  std::int64_t device = 0;
  BIMETAL_TRY_ASSIGN(fault.kind, bimetal::machines::ParseFaultKind(arguments.options.at("kind")));
  BIMETAL_TRY(Number(arguments, "device", device));
  BIMETAL_TRY(Number(arguments, "offset", fault.offset));
  BIMETAL_TRY(Number(arguments, "bit", fault.bit));
  BIMETAL_TRY(Number(arguments, "stuck", fault.stuck));
  BIMETAL_TRY(Number(arguments, "unit", fault.unit));
  BIMETAL_TRY(Number(arguments, "code", fault.code));
  BIMETAL_TRY(Number(arguments, "count", fault.count));
  BIMETAL_TRY(Number(arguments, "percent", fault.percent));
  if (arguments.options.contains("call")) fault.call = arguments.options.at("call");
  if (device > 4095 || fault.bit > 63 || fault.stuck > 1) {
    return Fail(ErrorCode::kInvalid, "--device, --bit (0 to 63) or --stuck (0, 1) is too large");
  }
  fault.device = static_cast<int>(device);
  return machine.Inject(fault);
}

Status ClearFaults(const Arguments& arguments, Machine& machine) {
  BIMETAL_TRY(OnlyOptions(arguments, {"device", "kind"}));
  std::optional<int> device;
  std::optional<Fault::Kind> kind;
  std::int64_t number = 0;
  BIMETAL_TRY(Number(arguments, "device", number));
  if (arguments.options.contains("device")) device = static_cast<int>(number);
  if (const auto found = arguments.options.find("kind"); found != arguments.options.end()) {
    BIMETAL_TRY_ASSIGN(kind, bimetal::machines::ParseFaultKind(found->second));
  }
  BIMETAL_TRY_ASSIGN(const std::size_t removed, machine.Clear(device, kind));
  std::cout << removed << " faults removed\n";
  return {};
}

void List(const Machine& machine) {
  std::cout << "machine " << machine.description().name << ", node " << machine.state().node
            << " (simulated)\n";
  for (const auto& device : machine.Devices()) {
    std::cout << device.id << "  " << device.name << "  " << device.pci_address << "\n";
  }
  for (const Fault& fault : machine.state().faults) {
    std::cout << "fault: device " << fault.device << " "
              << bimetal::machines::FaultKindName(fault.kind) << "\n";
  }
}

template <class T>
std::string Show(const bimetal::agent::Reading<T>& reading) {
  if (!reading.known()) return "?";
  if constexpr (std::is_same_v<T, std::string>) {
    return reading.value;
  } else {
    return std::to_string(reading.value);
  }
}

std::string ShowHealth(const bimetal::agent::Reading<bool>& healthy) {
  if (!healthy.known()) return "unknown: " + healthy.why;
  return healthy.value ? "healthy" : "unhealthy: " + healthy.why;
}

void PrintInventory(const std::string& root) {
  const auto inventory = bimetal::agent::ReadInventory(root, {});
  std::cout << "kernel " << Show(inventory.kernel) << "  boot " << Show(inventory.boot_id)
            << (inventory.simulated ? "  simulated" : "") << "\n";
  for (const auto& [vendor, facts] : inventory.facts) {
    std::cout << bimetal::agent::VendorName(vendor) << " fingerprint "
              << bimetal::agent::Fingerprint(inventory, vendor);
    for (const auto& [name, fact] : facts) std::cout << "  " << name << " " << Show(fact);
    std::cout << "\n";
  }
  for (const auto& d : inventory.devices) {
    std::cout << d.id.value << "  " << Show(d.model) << "  " << Show(d.architecture) << "  "
              << Show(d.pci_address) << "  " << Show(d.memory_bytes) << " bytes  "
              << Show(d.compute_units) << " units  " << Show(d.partition) << "  "
              << ShowHealth(d.healthy) << "\n";
  }
  for (const auto& f : inventory.findings) {
    std::cout << bimetal::agent::SeverityName(f.severity) << " " << f.code << " " << f.device
              << ": " << f.evidence << "; " << f.remedy << "\n";
  }
}

Status Run(const Arguments& arguments) {
  const std::string command = arguments.words.empty() ? "" : arguments.words[0];
  if (command == "inventory" && arguments.words.size() == 2) {
    PrintInventory(arguments.words[1]);
    return {};
  }
  if (command == "build") return Build(arguments);
  if (command != "fault" && command != "clear" && command != "reboot" && command != "list") {
    return Fail(ErrorCode::kInvalid, "unknown command '" + command + "'\n" + std::string(kUsage));
  }
  if (arguments.words.size() != 2) return Fail(ErrorCode::kInvalid, command + " needs one folder");
  BIMETAL_TRY_ASSIGN(Machine machine, Machine::Open(arguments.words[1]));
  if (command == "fault") return InjectFault(arguments, machine);
  if (command == "clear") return ClearFaults(arguments, machine);
  BIMETAL_TRY(OnlyOptions(arguments, {}));
  if (command == "reboot") return machine.Reboot();
  List(machine);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = bimetal::agent::MaybeRunProbe(argc, argv)) return *code;
  const auto arguments = Parse(argc, argv);
  const Status done =
      arguments ? Run(*arguments) : Status(tl::unexpected<bimetal::Error>(arguments.error()));
  if (done) return 0;
  std::cerr << "bimetal-machine: " << done.error().message << "\n";
  return done.error().code == ErrorCode::kInvalid ? 2 : 1;
}
