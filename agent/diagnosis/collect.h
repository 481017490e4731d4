#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/inventory.h"
#include "agent/devices/pci.h"
#include "agent/devices/root_files.h"
#include "agent/diagnosis/diagnose.h"
#include "agent/diagnosis/observations.h"

namespace bimetal::agent {

// What of a machine's file tree can be seen from here. A pod sees a part only.
struct Visible {
  bool sys = false;      // /sys/module or the PCI bus
  bool dev = false;      // /dev, by its null device
  bool modules = false;  // /lib/modules
  bool etc = false;
  bool usr = false;
  bool opt = false;  // where some of what may be under /usr lies on other machines
  bool var_lib = false;
  bool processes = false;  // /proc with the machine's own processes, by its first
};

// What the collectors share: read once. Collectors read files and set facts; they judge nothing.
struct Look {
  RootFiles files;
  const Inventory& inventory;
  DiagnoseOptions options;
  Visible visible;
  std::map<Vendor, PciGpus> pci;
  Reading<std::string> log;
};

Look MakeLook(const std::string& root, const Inventory& inventory, const DiagnoseOptions& options);

// The id of the device at a PCI address (of its whole GPU), else the address.
std::string SubjectAt(const Look& look, const std::string& address);

// Bottom up. Each sets the facts named in its file's first comment.
void CollectBus(const Look& look, Observations& seen);
void CollectModules(const Look& look, Observations& seen);
void CollectNodes(const Look& look, Observations& seen);
void CollectContainers(const Look& look, Observations& seen);
void CollectDevices(const Look& look, Observations& seen);
void CollectProcesses(const Look& look, Observations& seen);

}  // namespace bimetal::agent
