#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace bimetal::machines {

// Trouble put into one device of a simulated machine.
struct Fault {
  enum class Kind {
    kMemory,
    kCompute,
    kHang,
    kVanish,
    kXid,
    kEcc,
    // Of the validation program alone; what they do: docs/reference/validation-checks.md.
    kSkip,
    kCorruptHost,
    kCorruptPeer,
    kErrors,
    kSlowMemory,
    kSlowHost,
    kSlowLink,
    kSlowCompute,
    kLinkDown,
    kNoMemory
  };
  Kind kind = Kind::kMemory;
  int device = 0;             // counts through all groups of the machine
  std::int64_t offset = 0;    // memory: byte offset
  std::int64_t bit = 0;       // memory: 0..63, of the 64-bit word at offset
  std::int64_t stuck = 1;     // memory: the value that the bit always has
  std::int64_t unit = 0;      // compute: the unit that computes wrongly
  std::int64_t code = 79;     // xid: the number
  std::int64_t count = 1;     // ecc, errors: uncorrectable errors
  std::int64_t percent = 50;  // slow...: by how much
  std::string call = {};      // hang: the validation program's call; empty: launches
  std::int64_t sequence = 0;  // xid: place in the kernel log; set when it is put in
  bool operator==(const Fault&) const = default;
};
std::string_view FaultKindName(Fault::Kind kind);
Result<Fault::Kind> ParseFaultKind(std::string_view name);

// Whether the fault is nothing to the agent.
bool IsOfValidationOnly(Fault::Kind kind);

// What a device claims as its rate, in thousandths of the check's unit: MB/s, GFLOPS, ns.
struct ClaimedRate {
  std::int64_t value = 0;
  std::int64_t noise_percent = 1;
};
using ClaimedRates = std::map<std::string, ClaimedRate>;  // by check

struct MigInstance {
  std::string profile;  // 1g.10gb
  std::int64_t memory_bytes = 0;
  std::int64_t compute_units = 0;
};

// Equal GPUs of one vendor.
struct GpuGroup {
  std::string vendor;  // amd, nvidia
  std::string model;
  std::string arch;  // gfx942, sm_90
  std::int64_t pci_device = 0;
  int count = 0;
  std::int64_t compute_units = 0;  // of a whole GPU
  std::int64_t memory_bytes = 0;   // of a whole GPU
  std::string driver;
  std::string runtime;  // AMD: ROCm version; NVIDIA: highest CUDA version, 13.0
  std::map<std::string, std::string> firmware;
  std::vector<std::string> pci;  // addresses, one a GPU
  std::int64_t link_generation = 5;
  std::int64_t link_width = 16;
  // AMD: dkms, in-tree; NVIDIA: open, proprietary. Empty: dkms, open.
  std::string flavor;
  // Where they differ from what is usual for the architecture.
  ClaimedRates rates;
  // AMD
  std::string compute_partition = "SPX";
  std::string memory_partition = "NPS1";
  int partitions = 1;                           // devices that one GPU is cut into
  std::string partition_entry = "amdgpu_xcp.";  // or amdgpu_xcp_, as older drivers name them
  // NVIDIA
  int nvlinks = 0;               // of each GPU, to switches; 0: it has none
  std::string toolkit;           // version of the container toolkit on the machine; empty: none
  std::vector<MigInstance> mig;  // not empty: MIG is on, each GPU has these
  // Answers of the library that differ: query -> value or "!code"; by device of the group, -1: all.
  std::map<int, std::map<std::string, std::string>> answers;
};

// A machine as tests/machines/*.yaml describe it.
struct Description {
  std::string name;
  std::string kernel = "6.8.0-90-generic";
  int numa_nodes = 2;
  std::vector<GpuGroup> groups;
  std::vector<Fault> faults;  // present from the start
  // Files under the root that are added or replaced, by path: what no other key describes.
  std::map<std::string, std::string> files;

  int GpuCount() const;
};

// Errors: kInvalid with the place: "gpus[0].memoryBytes: not a whole number". Unknown keys are
// refused.
Result<Description> ParseDescription(std::string_view yaml);

// The state of a built machine, kept beside it as machine/state.yaml.
struct State {
  std::string node;
  std::int64_t seed = 1;
  std::int64_t boots = 1;
  std::int64_t next_sequence = 100;
  std::vector<Fault> faults;
};
Result<State> ParseState(std::string_view yaml);
std::string FormatState(const State& state);

// Error kInvalid where the fault names a device, byte or unit that the machine has not.
Status CheckFault(const Fault& fault, const Description& description);

}  // namespace bimetal::machines
