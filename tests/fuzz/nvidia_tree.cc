// NVIDIA's readers over /proc/driver/nvidia, without its library.
#include "agent/devices/nvidia/nvidia_source.h"
#include "agent/devices/nvidia/proc.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/source.h"
#include "tests/fuzz/tree.h"

BIMETAL_FUZZ(text) {
  static const Tree tree;
  static const std::string pci = "sys/bus/pci/devices/0000:18:00.0/";
  tree.WriteParts({"proc/driver/nvidia/gpus/0000:18:00.0/information", "proc/driver/nvidia/version",
                   "sys/module/nvidia/version", pci + "vendor", pci + "class", pci + "numa_node"},
                  text);
  agent::NormalPciAddress(text);
  agent::NvidiaSourceOptions options;
  options.root = tree.root();
  ReadAndReadBack(*agent::MakeNvidiaSource(options));
}
