#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/devices/root_files.h"

namespace bimetal::agent {

// One folder of /proc/driver/nvidia/gpus: what the kernel module knows without any library.
struct ProcGpu {
  std::string address;                      // 0000:62:00.0
  std::map<std::string, std::string> info;  // "Model", "GPU UUID", ... as the module prints them
  std::string why;                          // where info is empty
  bool Excluded() const;
  Reading<std::string> Get(const std::string& key) const;
};

struct ProcNvidia {
  bool present = false;         // the folder of GPUs could be listed
  Reading<std::string> driver;  // version of the loaded module
  Reading<std::string> flavor;  // "open" or "proprietary"
  std::vector<ProcGpu> gpus;    // by address
};

ProcNvidia ReadProcNvidia(const RootFiles& files);

// "0000:18:00.0" of any form that the driver prints, as 00000000:18:00.0 or 0000:18:00.
std::string NormalPciAddress(std::string_view text);

}  // namespace bimetal::agent
