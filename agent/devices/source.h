#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/reading.h"
#include "agent/devices/telemetry.h"
#include "core/base/ids.h"

namespace bimetal::agent {

enum class Vendor { kNvidia, kAmd };

// "nvidia" or "amd".
std::string_view VendorName(Vendor vendor);

// Direct links to one other device, bundled. A plain value.
struct DeviceLink {
  std::string kind;         // nvlink, xgmi, pcie
  std::string peer;         // id of the whole GPU at the other end; empty: a switch, or not told
  std::int64_t count = 0;   // physical links in the bundle
  std::int64_t active = 0;  // of these, up

  auto operator<=>(const DeviceLink&) const = default;
};

// One schedulable device: a whole GPU or one partition of one. A plain value. What moves by itself
// (temperature, load, clocks) is not in it but in Telemetry.
struct Device {
  Vendor vendor = Vendor::kNvidia;
  // Stable over reboots, driver updates and re-ordering, at most 63 characters (the kubelet's
  // limit), never an index. NVIDIA: GPU-<uuid> or MIG-<uuid>. AMD: GPU-<unique id, 16 hex digits>
  // (what ROCR_VISIBLE_DEVICES takes), with -p<N> in a partition mode; without a unique id
  // PCI-<address>[-<serial>].
  DeviceId id;
  int index = -1;  // the vendor's present order, for people only; -1: none

  Reading<std::string> model;         // the vendor's own text, not cleaned
  Reading<std::string> architecture;  // sm_90, gfx942
  Reading<std::string> driver;        // kernel driver version
  Reading<std::string> serial;
  Reading<std::string> pci_address;  // 0000:05:00.0, lower case
  Reading<std::string> pci_id;       // vendor and device, 10de:2330
  Reading<std::string> partition;    // AMD SPX/NPS1; NVIDIA off, or the instance's profile
  Reading<std::string> parent;       // id of the whole GPU where this is a partition
  Reading<std::string> ecc;          // "on", "off"
  Reading<std::map<std::string, std::string>> firmware;  // vbios and blocks, by name

  Reading<std::int64_t> memory_bytes;
  Reading<std::int64_t> compute_units;  // SMs, CUs
  Reading<std::int64_t> link_generation;
  Reading<std::int64_t> link_generation_max;
  Reading<std::int64_t> link_width;
  Reading<std::int64_t> link_width_max;
  Reading<std::int64_t> numa_node;
  Reading<std::string> cpus;                 // near the device, in the kernel's form: 0-31,64-95
  Reading<std::vector<DeviceLink>> links;    // sorted; known and empty: it has none
  Reading<std::int64_t> uncorrected_errors;  // since the driver was loaded
  // Memory rows or pages taken out of use for good; that wait for a reset; that could not be.
  Reading<std::int64_t> retired_rows;
  Reading<std::int64_t> rows_pending;
  Reading<std::int64_t> rows_failed;

  Reading<bool> healthy;                  // `why` says what is wrong where the value is false
  std::vector<std::string> device_nodes;  // paths under /dev that a container needs, sorted

  bool operator==(const Device&) const = default;
};

enum class Severity { kInfo, kWarning, kError };

// "info", "warning", "error".
std::string_view SeverityName(Severity severity);

// What follows from a finding for its device, or for all of its vendor's devices where it names
// none. kRevalidate: it must pass again, when it is idle. kCordon: no new work until it passed
// again.
enum class Effect { kNone, kRevalidate, kCordon };

// "None", "Revalidate", "Cordon": as the API writes them.
std::string_view EffectName(Effect effect);

// Something a person should know. docs/reference/findings.md lists every code.
struct Finding {
  std::string code;  // CamelCase, from a closed set
  Severity severity = Severity::kWarning;
  std::string device;    // device id, PCI address, or empty: the whole node
  std::string evidence;  // what was seen and where
  std::string remedy;    // what to do
  // Empty: a present state, gone when it is gone. Else a key that is unique within this boot: an
  // event that happened once and stays in the list as long as its source remembers it.
  std::string event;
  Effect effect = Effect::kNone;
  std::string vendor{};         // "nvidia", "amd"; empty: the node
  std::string documentation{};  // a page that says more

  auto operator<=>(const Finding&) const = default;
};

// What one vendor's reader found. Facts are the vendor's node-wide readings, by name: "driver",
// "flavor" (open, proprietary, in-tree, dkms), "runtime", "library" and "toolkit" (NVIDIA).
struct SourceReport {
  std::vector<Device> devices;
  std::map<std::string, Telemetry> telemetry;  // by device id; a device may have none
  std::vector<Finding> findings;
  std::map<std::string, Reading<std::string>> facts;
  bool simulated = false;

  bool operator==(const SourceReport&) const = default;
};

// Follows a reader so that a reader that never comes back can be told by its last step.
class ReadProgress {
 public:
  virtual ~ReadProgress() = default;
  // True: an earlier attempt hung or crashed in this step; do not take it again.
  virtual bool ShouldSkip(std::string_view step) const = 0;
  // About to take `step` ("library", "gpu 3"), which calls into driver or vendor library.
  virtual void Begin(std::string_view step) = 0;
};

// Reads one vendor's devices. A reader never fails as a whole: what it could not read is in the
// devices' fields and in the findings. It may block for ever in a driver: run it in a probe process
// (probe.h) wherever a machine is real.
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  virtual SourceReport Read(ReadProgress& progress) = 0;
};

}  // namespace bimetal::agent
