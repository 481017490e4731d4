// Facts of device files: dev.nvidia (complete, missing), dev.nvidia_uvm, dev.kfd, dev.kfd.mode
// (open, closed), dev.render of each AMD device, open.kfd (ok, denied, refused).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/devices/nvidia/proc.h"
#include "agent/diagnosis/collect.h"

namespace bimetal::agent {
namespace {

void CollectNvidia(const Look& look, Observations& seen) {
  const ProcNvidia proc = ReadProcNvidia(look.files);
  if (!proc.present) return;
  seen.Set("nvidia.minors", std::to_string(proc.gpus.size()),
           "the driver has " + std::to_string(proc.gpus.size()) + " GPU(s)");
  if (!look.visible.dev) return seen.SetUnknown("dev.nvidia", "/dev cannot be seen");
  std::string missing;
  if (!look.files.Exists("dev/nvidiactl")) missing = "/dev/nvidiactl";
  for (const ProcGpu& gpu : proc.gpus) {
    const auto minor = gpu.Get("Device Minor");
    if (!minor.known() || look.files.Exists("dev/nvidia" + minor.value)) continue;
    missing += (missing.empty() ? "" : ", ") + ("/dev/nvidia" + minor.value);
  }
  seen.Set("dev.nvidia", missing.empty() ? "complete" : "missing",
           missing.empty() ? std::string() : missing + " missing");
  const bool uvm = look.files.Exists("dev/nvidia-uvm");
  seen.Set("dev.nvidia_uvm", uvm ? "present" : "missing",
           uvm ? std::string() : "/dev/nvidia-uvm missing");
}

// The permissions of a file under the root, links not followed; nothing where it is not there.
std::optional<struct stat> StatOf(const Look& look, const std::string& path) {
  struct stat info {};
  if (lstat((look.files.root() + "/" + path).c_str(), &info) != 0) return std::nullopt;
  return info;
}

void CollectKfdMode(const Look& look, Observations& seen) {
  const auto info = StatOf(look, "dev/kfd");
  if (!info) return;
  const bool group =
      (info->st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP) && info->st_gid != 0;
  const bool all = (info->st_mode & (S_IROTH | S_IWOTH)) == (S_IROTH | S_IWOTH);
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info->st_mode & 07777));
  seen.Set("dev.kfd.mode", group || all ? "open" : "closed",
           std::string("/dev/kfd has mode ") + mode + ", group " + std::to_string(info->st_gid));
}

void CollectKfdOpen(const Look& look, Observations& seen) {
  const int fd = open((look.files.root() + "/dev/kfd").c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) {
    close(fd);
    return seen.Set("open.kfd", "ok");
  }
  if (errno == EACCES) {
    seen.Set("open.kfd", "denied", "open /dev/kfd: Permission denied (EACCES)");
  } else if (errno == EPERM) {
    seen.Set("open.kfd", "refused", "open /dev/kfd: Operation not permitted (EPERM)");
  } else {
    seen.SetUnknown("open.kfd", "open /dev/kfd fails in another way");
  }
}

void CollectAmd(const Look& look, Observations& seen) {
  if (!look.visible.dev) return seen.SetUnknown("dev.kfd", "/dev cannot be seen");
  const bool kfd = look.files.Exists("dev/kfd");
  seen.Set("dev.kfd", kfd ? "present" : "missing", kfd ? std::string() : "/dev/kfd missing");
  if (kfd) {
    CollectKfdMode(look, seen);
    if (look.options.open_nodes) CollectKfdOpen(look, seen);
  }
  for (const Device& device : look.inventory.devices) {
    if (device.vendor != Vendor::kAmd) continue;
    for (const std::string& node : device.device_nodes) {
      if (!node.starts_with("/dev/dri/renderD")) continue;
      const bool there = look.files.Exists(node);
      seen.SetFor(device.id.value, "dev.render", there ? "present" : "missing",
                  there ? std::string() : node + " missing");
    }
  }
}

}  // namespace

void CollectNodes(const Look& look, Observations& seen) {
  CollectNvidia(look, seen);
  if (!look.pci.at(Vendor::kAmd).gpus.empty()) CollectAmd(look, seen);
}

}  // namespace bimetal::agent
