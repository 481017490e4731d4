// Facts of kernel modules, for each of nvidia and amdgpu: module.X (loaded, absent), module.X.file
// (yes, no: for the running kernel), module.X.elsewhere (for another kernel), dkms.X (none, built,
// failed), dkms.X.built (newest version); nvidia.driver, nvidia.library, secureboot,
// log.key_rejected.
#include <array>

#include "agent/devices/kernel_log.h"
#include "agent/diagnosis/collect.h"
#include "agent/diagnosis/engine.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxModulesDep = 16UL * 1024 * 1024;
constexpr std::size_t kMaxKernels = 32;

// Where a module lies when modules.dep cannot tell.
constexpr std::array<std::string_view, 7> kModuleFolders = {"updates/dkms",
                                                            "updates",
                                                            "extra",
                                                            "misc",
                                                            "kernel/drivers/video",
                                                            "kernel/drivers/gpu/drm/amd/amdgpu",
                                                            "weak-updates/nvidia"};

// True, false: the kernel release has a module file of that name, or not. Nothing: it cannot be
// seen.
std::optional<bool> HasModule(const RootFiles& files, const std::string& release,
                              const std::string& name) {
  const std::string folder = "lib/modules/" + release;
  const std::string file = "/" + name + ".ko";
  bool read = false;
  for (const char* list : {"/modules.dep", "/modules.builtin"}) {
    const auto text = files.Text(folder + list, kMaxModulesDep);
    if (!text.known()) continue;
    read = true;
    for (auto at = text.value.find(file); at != std::string::npos;
         at = text.value.find(file, at + 1)) {
      const char next = at + file.size() < text.value.size() ? text.value[at + file.size()] : ':';
      if (next == ':' || next == '.' || next == '\n' || next == ' ') return true;
    }
  }
  for (const std::string_view part : kModuleFolders) {
    for (const char* ending : {".ko", ".ko.zst", ".ko.xz", ".ko.gz"}) {
      if (files.Exists(folder + "/" + std::string(part) + "/" + name + ending)) return true;
    }
  }
  if (read || files.List(folder).known()) return false;
  return std::nullopt;
}

void CollectModuleFiles(const Look& look, const std::string& name, Observations& seen) {
  const std::string fact = "module." + name;
  if (!look.visible.modules || !look.inventory.kernel.known()) {
    seen.SetUnknown(fact + ".file", "/lib/modules cannot be seen");
    return seen.SetUnknown(fact + ".elsewhere", "/lib/modules cannot be seen");
  }
  const std::string& release = look.inventory.kernel.value;
  const bool here = HasModule(look.files, release, name).value_or(false);
  seen.Set(fact + ".file", here ? "yes" : "no",
           "/lib/modules/" + release + (here ? " has " : " has no ") + name + ".ko");
  std::string other;
  std::size_t looked = 0;
  for (const std::string& kernel : look.files.List("lib/modules").value) {
    if (kernel == release || ++looked > kMaxKernels) continue;
    if (HasModule(look.files, kernel, name).value_or(false)) other = kernel;
  }
  seen.Set(fact + ".elsewhere", other.empty() ? "no" : "yes",
           other.empty() ? "no other kernel has it" : "/lib/modules/" + other + " has it");
}

void CollectDkms(const Look& look, const std::string& name, Observations& seen) {
  const std::string fact = "dkms." + name;
  if (!look.visible.var_lib) return seen.SetUnknown(fact, "/var/lib cannot be seen");
  std::string built;
  std::string failed;
  for (const std::string& package : {name, name + "-open", name + "-srv"}) {
    const std::string folder = "var/lib/dkms/" + package;
    for (const std::string& version : look.files.List(folder).value) {
      if (version.empty() || version[0] < '0' || version[0] > '9') continue;
      const std::string tree = folder + "/" + version;
      if (!look.inventory.kernel.known()) continue;
      if (look.files.Exists(tree + "/" + look.inventory.kernel.value)) {
        if (built.empty() || CompareVersions(version, built) > 0) built = version;
      } else {
        failed = "/" + tree + " has no build for " + look.inventory.kernel.value;
        if (look.files.Exists(tree + "/build/make.log"))
          failed += "; see /" + tree + "/build/make.log";
      }
    }
  }
  if (!built.empty()) {
    seen.Set(fact, "built");
    return seen.Set(fact + ".built", built,
                    "/var/lib/dkms/" + name + "/" + built + " is built for this kernel");
  }
  seen.Set(fact, failed.empty() ? "none" : "failed", failed);
}

void CollectModule(const Look& look, const std::string& name, Vendor vendor, Observations& seen) {
  const std::string fact = "module." + name;
  const bool loaded =
      look.files.Exists("sys/module/" + name) ||
      (vendor == Vendor::kNvidia && look.files.Exists("proc/driver/nvidia/version"));
  if (loaded) {
    seen.Set(fact, "loaded");
  } else if (look.files.List("sys/module").known()) {
    seen.Set(fact, "absent", "/sys/module/" + name + " is missing");
  } else {
    seen.SetUnknown(fact, "/sys/module cannot be seen");
  }
  CollectDkms(look, name, seen);
  // The files matter only where the module is not at work, and are long lists.
  if (!loaded && !look.pci.at(vendor).gpus.empty()) CollectModuleFiles(look, name, seen);
}

// libnvidia-ml.so.1 -> libnvidia-ml.so.580.178
void CollectLibrary(const Look& look, Observations& seen) {
  constexpr std::string_view kName = "libnvidia-ml.so.";
  for (const char* folder :
       {"usr/lib/x86_64-linux-gnu/", "usr/lib64/", "usr/lib/", "usr/lib/aarch64-linux-gnu/"}) {
    const std::string path = folder + std::string(kName) + "1";
    const auto target = look.files.LinkName(path);
    if (!target.known() || !target.value.starts_with(kName)) continue;
    const std::string version = target.value.substr(kName.size());
    if (version.find('.') == std::string::npos) continue;
    return seen.Set("nvidia.library", version, "/" + path + " is " + target.value);
  }
  seen.SetUnknown("nvidia.library", "no libnvidia-ml.so.1 that names its version");
}

void CollectDriver(const Look& look, Observations& seen) {
  const auto facts = look.inventory.facts.find(Vendor::kNvidia);
  const auto version = look.files.Text("sys/module/nvidia/version");
  if (version.known()) {
    return seen.Set("nvidia.driver", version.value,
                    "/sys/module/nvidia/version is " + version.value);
  }
  if (facts != look.inventory.facts.end()) {
    const auto driver = facts->second.find("driver");
    if (driver != facts->second.end() && driver->second.known()) {
      return seen.Set("nvidia.driver", driver->second.value,
                      "the loaded module is " + driver->second.value);
    }
  }
  seen.SetUnknown("nvidia.driver", "no NVIDIA module is loaded");
}

// The fifth byte of the variable: four bytes of attributes come first.
void CollectSecureBoot(const Look& look, Observations& seen) {
  const auto bytes = look.files.Bytes(
      "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 64);
  if (!bytes.known() || bytes.value.size() < 5) return seen.Set("secureboot", "unknown");
  const bool on = bytes.value[4] == 1;
  seen.Set("secureboot", on ? "on" : "off", on ? "Secure Boot is on" : std::string());
}

}  // namespace

void CollectModules(const Look& look, Observations& seen) {
  CollectModule(look, "nvidia", Vendor::kNvidia, seen);
  CollectModule(look, "amdgpu", Vendor::kAmd, seen);
  CollectDriver(look, seen);
  CollectLibrary(look, seen);
  CollectSecureBoot(look, seen);
  if (!look.log.known()) return seen.SetUnknown("log.key_rejected", look.log.why);
  const auto facts = KernelFacts(look.log.value);
  const auto rejected = facts.find("key_rejected");
  seen.Set("log.key_rejected", rejected == facts.end() ? "no" : "yes",
           rejected == facts.end() ? std::string() : "kernel log: " + rejected->second);
}

}  // namespace bimetal::agent
