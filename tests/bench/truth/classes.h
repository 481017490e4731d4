#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/truth/sim_node.h"

namespace bimetal::truth {

// What must come of a fault.
enum class Truth {
  // The kernels prove the device wrong: it is quarantined, the others are not.
  kFail,
  // Nothing could be proven of the device: it stays shut, and no device is quarantined.
  kInconclusive,
  // What is known of the device is void: it is shut at once, until it passes a run begun after.
  kProveAgain,
  // The device is shut as long as the state lasts, whatever the kernels say.
  kShut,
  // No fault of a device: nothing may be shut for it.
  kSound,
};
std::string_view TruthName(Truth truth);

// A case under way: the node and the device that the seed chose.
struct Case {
  SimNode& node;
  std::mt19937_64& random;
  std::size_t target = 0;

  std::uint64_t Below(std::uint64_t bound) { return random() % bound; }
  std::string Device() const { return std::to_string(target); }
  std::string Pci() const { return node.machine().Devices().at(target).pci_address; }
};

struct FaultClass {
  std::string name;
  std::string machine;  // h100, mi300x, mig
  Truth truth = Truth::kFail;
  // Put in before the node is first validated (what only kernels can see), or after it was
  // admitted.
  bool later = false;
  // Whose trouble it is: the chosen device, or all devices of the node.
  bool whole_node = false;
  // Before the machine is looked at first.
  std::function<void(SimNode&)> prepare = nullptr;
  std::function<Status(Case&)> inject;
};

// Every class of the campaign. A class whose fault the simulator does not know fails with a
// message.
std::vector<FaultClass> AllClasses();

// The description of a machine by its short name.
std::string DescriptionOf(const std::string& machine);

}  // namespace bimetal::truth
