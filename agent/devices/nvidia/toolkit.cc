#include "agent/devices/nvidia/toolkit.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace bimetal::agent {
namespace {

constexpr std::array<const char*, 7> kFolders = {
    "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64",         "usr/lib",
    "usr/local/nvidia/toolkit", "run/nvidia/toolkit",        "opt/nvidia/toolkit"};

bool IsVersion(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         text.find('.') != std::string_view::npos &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// "1.17.8" of "libnvidia-container.so.1.17.8"; the longest of a folder, as so.1 links to it.
std::string LibraryVersion(const std::vector<std::string>& names) {
  constexpr std::string_view kPrefix = "libnvidia-container.so.";
  std::string found;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view version = std::string_view(name).substr(kPrefix.size());
    if (IsVersion(version) && version.size() > found.size()) found = version;
  }
  return found;
}

// The Version line of the package in dpkg's status file, without the distribution's suffix.
std::string PackageVersion(std::string_view status, std::string_view package) {
  bool ours = false;
  for (const std::string_view line : Lines(status)) {
    if (line.empty()) ours = false;
    if (line.starts_with("Package: ")) ours = Trim(line.substr(9)) == package;
    if (ours && line.starts_with("Version: ")) {
      const std::string_view version = Trim(line.substr(9));
      return std::string(version.substr(0, version.find('-')));
    }
  }
  return {};
}

}  // namespace

Reading<std::string> ReadToolkitVersion(const RootFiles& files) {
  for (const char* folder : kFolders) {
    const std::string version = LibraryVersion(files.List(folder).value);
    if (!version.empty()) return Reading<std::string>::Of(version);
  }
  constexpr std::size_t kMaxStatus = 16UL * 1024 * 1024;
  const auto status = files.Text("var/lib/dpkg/status", kMaxStatus);
  if (status.known()) {
    const std::string version = PackageVersion(status.value, "nvidia-container-toolkit");
    if (IsVersion(version)) return Reading<std::string>::Of(version);
  }
  return Reading<std::string>::Unknown("no file of the container toolkit is seen");
}

}  // namespace bimetal::agent
