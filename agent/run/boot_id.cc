#include "agent/run/boot_id.h"

#include <fstream>

namespace bimetal::agent {

std::string ReadOwnBootId() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  in >> id;
  return id.size() <= 64 ? id : std::string();
}

}  // namespace bimetal::agent
