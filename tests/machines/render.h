#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/machines/description.h"
#include "tests/machines/tree.h"

namespace bimetal::machines {

// One device as the kernels' host back end and the agent name it.
struct SimulatedDevice {
  std::string id;
  std::string vendor;
  std::string name;
  std::string arch;
  std::int64_t compute_units = 0;
  std::int64_t memory_bytes = 0;
  std::string pci_address;
  std::vector<Fault> faults;  // those that the host back end knows
  ClaimedRates rates = {};
};

// One GPU of a group with all that is derived from the node's name and the seed.
struct Gpu {
  const GpuGroup* group = nullptr;
  std::size_t index = 0;  // in its group
  int number = 0;         // in the machine
  std::string pci;        // 0000:05:00.0
  std::string unique;     // 16 hex digits (AMD) or a UUID (NVIDIA)
  std::string serial;
  int numa = 0;
  std::vector<Fault> faults;

  bool Has(Fault::Kind kind) const;
  const Fault* Find(Fault::Kind kind) const;
};

// `n` hex digits that are the same for the same words, and as good as unique else.
std::string Digits(std::string_view words, std::size_t n);

// Every simulated NUMA node has as many CPUs.
inline constexpr int kCpusOfNode = 96;
std::string CpuList(int numa);

std::vector<Gpu> GpusOf(const Description& description, const State& state);

// The machine as a root folder. `nvml` is the path of the library to copy, needed where the machine
// has NVIDIA devices.
Tree RenderMachine(const Description& description, const State& state, const std::string& nvml);

void RenderAmd(const Description& description, const State& state, const std::vector<Gpu>& gpus,
               Tree& tree);
void RenderNvidia(const std::vector<Gpu>& gpus, const std::string& nvml, Tree& tree);

// The devices that the machine's readers find where all is well, in the machine's order.
std::vector<SimulatedDevice> DevicesOf(const Description& description, const State& state);
std::string DevicesJson(const std::vector<SimulatedDevice>& devices);

// UUID of an instance of an NVIDIA GPU in MIG mode.
std::string MigUuid(const Gpu& gpu, std::size_t instance);

}  // namespace bimetal::machines
