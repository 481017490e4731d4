// AMD's readers over sysfs and KFD files.
#include "agent/devices/amd/amd_source.h"
#include "agent/devices/amd/kfd.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/source.h"
#include "tests/fuzz/tree.h"

BIMETAL_FUZZ(text) {
  static const Tree tree;
  static const std::string card = "sys/bus/pci/devices/0000:05:00.0/";
  static const std::string node = "sys/class/kfd/kfd/topology/nodes/1/";
  static const bool made = [] {
    tree.Write(card + "vendor", "0x1002\n");
    tree.Write(card + "class", "0x120000\n");
    tree.Write(card + "device", "0x74a1\n");
    tree.Write(node + "gpu_id", "4711\n");
    tree.Write("sys/class/kfd/kfd/topology/generation_id", "2\n");
    return true;
  }();
  Require(made);
  tree.WriteParts(
      {node + "properties", node + "mem_banks/0/properties", card + "unique_id",
       card + "current_compute_partition", card + "current_link_speed", card + "ras/umc_err_count",
       card + "mem_info_vram_total", node + "io_links/0/properties", "sys/module/amdgpu/version"},
      text);
  ReadAndReadBack(*agent::MakeAmdSource(tree.root()));
}
