#pragma once

#include <cstddef>
#include <string>

#include "agent/devices/root_files.h"

namespace bimetal::agent {

// The running kernel's own log, by its system call, which needs CAP_SYSLOG and no device file: a
// pod may be given the one and not the other. At most the newest `limit` bytes. Error: not allowed.
Reading<std::string> ReadKernelRing(std::size_t limit);

// True: the tree under a root is of the machine, and of the boot, on which this process runs, so
// that its kernel's log is this kernel's. A recording, a disk or a simulated machine is not.
bool IsThisMachine(const RootFiles& files);

}  // namespace bimetal::agent
