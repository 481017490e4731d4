#include "agent/diagnosis/kernel_ring.h"

#include <sys/klog.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace bimetal::agent {
namespace {

constexpr int kReadAll = 3;  // actions of syslog(2), which has no header for them
constexpr int kSize = 10;
constexpr char kBootId[] = "proc/sys/kernel/random/boot_id";

}  // namespace

Reading<std::string> ReadKernelRing(std::size_t limit) {
  const int size = klogctl(kSize, nullptr, 0);
  std::string text(std::min(limit, static_cast<std::size_t>(std::max(size, 0))), '\0');
  const int read = size < 0 ? -1 : klogctl(kReadAll, text.data(), static_cast<int>(text.size()));
  if (read < 0) {
    return Reading<std::string>::Failed("reading the kernel's log: " +
                                        std::generic_category().message(errno));
  }
  text.resize(static_cast<std::size_t>(read));
  return Reading<std::string>::Of(std::move(text));
}

bool IsThisMachine(const RootFiles& files) {
  const auto theirs = files.Text(kBootId);
  const auto ours = RootFiles("/").Text(kBootId);
  return theirs.known() && ours.known() && theirs.value == ours.value;
}

}  // namespace bimetal::agent
