#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/probe.h"
#include "agent/devices/source.h"

namespace bimetal::agent {

// Everything a node's agent knows of its machine at one moment. A plain value.
struct Inventory {
  std::vector<Device> devices;                 // sorted by id, each id once
  std::map<std::string, Telemetry> telemetry;  // of some of the devices, by id
  std::vector<Finding> findings;               // sorted, the gravest first
  // The vendor's node-wide readings, by name (SourceReport).
  std::map<Vendor, std::map<std::string, Reading<std::string>>> facts;
  Reading<std::string> kernel;   // release
  Reading<std::string> boot_id;  // changes at every boot
  bool simulated = false;        // a machine made by tests/machines
  std::string machine;           // where simulated: the root folder, which has devices.json
};

struct InventoryOptions {
  ProbeOptions probe;
  bool nvidia = true;
  bool amd = true;
  bool kernel_log = true;
};

// Reads a machine under a root folder again and again. One owner thread; Read blocks while a
// vendor's driver does not answer, at most 2 * options.probe.total and two seconds.
class InventoryReader {
 public:
  InventoryReader(std::string root, InventoryOptions options);
  // Never fails: what could not be read is in the fields and findings. Unchanged machines give
  // inventories that are equal but for their telemetry.
  Inventory Read();

 private:
  SourceReport ReadVendor(Vendor vendor);

  std::string root_;
  InventoryOptions options_;
  ProbeMemory memory_;
  std::map<Vendor, SourceReport> last_;  // the last look of each vendor
};

// How the reason of a value begins that an earlier look read and the last one did not.
inline constexpr std::string_view kLastRead = "as last read; now: ";

// What an incomplete look did not show is still there as far as anybody knows. Devices of `before`
// that are missing in `now` stay, with unknown health, unless `now` shows their GPU cut otherwise;
// fields and facts that `now` could not read keep their last value, so that a driver that hangs is
// not taken for another configuration. What `now` did read holds.
// Of a complete look only fields that say what a device is keep their last value: those whose
// reading failed, and of a device that is seen sick also those that are not told, so that one bad
// device does not change the fingerprint of its node. Their reason begins with kLastRead.
void KeepUnseen(const SourceReport& before, SourceReport& now);

// One read by itself.
Inventory ReadInventory(const std::string& root, const InventoryOptions& options);

// Joins what the vendors' readers found: sorts, bounds ids, adds the findings that need no vendor
// (UncorrectedMemoryErrors, MemorySizeUnknown, LinkWidthReduced, LabelClash, DuplicateDevice).
void AddReport(SourceReport report, Vendor vendor, Inventory& inventory);
void FinishInventory(Inventory& inventory);

}  // namespace bimetal::agent
