// Facts of the software above the driver: container_runtime, toolkit (present, none), cdi (present,
// none), cdi.driver, cdi.gpus, runtime_config, rocm, rocm.driver_max, cuda, cuda.major,
// cuda.driver_max, cuda.driver_major, torch (cuda, rocm, none).
#include <algorithm>
#include <set>

#include "agent/diagnosis/collect.h"
#include "agent/diagnosis/support_tables.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxSpec = 1024UL * 1024;

std::string Major(const std::string& version) { return version.substr(0, version.find('.')); }

const Reading<std::string>* FactOf(const Look& look, Vendor vendor, const std::string& name) {
  const auto facts = look.inventory.facts.find(vendor);
  if (facts == look.inventory.facts.end()) return nullptr;
  const auto fact = facts->second.find(name);
  return fact == facts->second.end() ? nullptr : &fact->second;
}

bool ExistsAny(const RootFiles& files, std::initializer_list<const char*> paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const char* path) { return files.Exists(path); });
}

void CollectToolkit(const Look& look, Observations& seen) {
  const auto* version = FactOf(look, Vendor::kNvidia, "toolkit");
  const bool found =
      (version != nullptr && version->known()) ||
      ExistsAny(look.files,
                {"usr/bin/nvidia-ctk", "usr/bin/nvidia-container-runtime",
                 "usr/bin/nvidia-container-cli", "usr/local/nvidia/toolkit/nvidia-ctk"});
  if (found) {
    seen.Set("toolkit", "present");
  } else if (look.visible.usr && look.visible.opt) {
    seen.Set("toolkit", "none", "no nvidia-ctk under /usr");
  } else {
    seen.SetUnknown("toolkit", look.visible.usr ? "not under /usr, and /opt cannot be seen"
                                                : "/usr cannot be seen");
  }
  if (look.visible.usr) {
    const bool runs =
        ExistsAny(look.files, {"usr/bin/kubelet", "usr/local/bin/kubelet", "usr/bin/containerd",
                               "usr/local/bin/containerd", "usr/bin/dockerd", "usr/bin/crio",
                               "usr/bin/podman", "usr/local/bin/k3s", "usr/local/bin/rke2"});
    seen.Set("container_runtime", runs ? "yes" : "no");
  }
}

// The text of every CDI specification that speaks of NVIDIA's GPUs.
std::string CdiText(const Look& look, std::string& names) {
  std::string all;
  for (const std::string folder : {"etc/cdi", "var/run/cdi", "run/cdi"}) {
    for (const std::string& name : look.files.List(folder).value) {
      if (!name.ends_with(".yaml") && !name.ends_with(".json") && !name.ends_with(".yml")) continue;
      const auto text = look.files.Text(folder + "/" + name, kMaxSpec);
      if (!text.known() || text.value.find("nvidia.com/gpu") == std::string::npos) continue;
      if (names.find("/" + name) != std::string::npos) continue;  // /var/run is /run
      names += (names.empty() ? "/" : ", /") + folder + "/" + name;
      all += text.value + "\n";
    }
  }
  return all;
}

// "580.173.02" of "libcuda.so.580.173.02".
std::string LibraryVersionIn(const std::string& text) {
  for (const std::string_view name : {"libcuda.so.", "libnvidia-ml.so."}) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const auto begin = at + name.size();
      const auto end = std::min(text.find_first_not_of("0123456789.", begin), text.size());
      std::string version = text.substr(begin, end - begin);
      while (version.ends_with('.')) version.pop_back();
      if (version.find('.') != std::string::npos) return version;
    }
  }
  return {};
}

// How many /dev/nvidia<N> a specification names.
std::size_t GpuNodesIn(const std::string& text) {
  constexpr std::string_view kNode = "/dev/nvidia";
  std::set<std::string> nodes;
  for (auto at = text.find(kNode); at != std::string::npos; at = text.find(kNode, at + 1)) {
    const auto begin = at + kNode.size();
    const auto end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    if (end > begin) nodes.insert(text.substr(begin, end - begin));
  }
  return nodes.size();
}

void CollectCdi(const Look& look, Observations& seen) {
  std::string names;
  const std::string text = CdiText(look, names);
  if (text.empty()) {
    if (!look.visible.etc) return seen.SetUnknown("cdi", "/etc/cdi cannot be seen");
    seen.Set("cdi", "none", "no specification of nvidia.com/gpu in /etc/cdi or /var/run/cdi");
  } else {
    seen.Set("cdi", "present");
    const std::string version = LibraryVersionIn(text);
    if (!version.empty()) {
      seen.Set("cdi.driver", version, names + " names libraries of " + version);
    }
    const std::size_t nodes = GpuNodesIn(text);
    if (nodes > 0) {
      seen.Set("cdi.gpus", std::to_string(nodes),
               names + " names " + std::to_string(nodes) + " GPU(s)");
    }
  }
  if (!look.visible.etc) return;
  bool named = false;
  for (const char* path :
       {"etc/containerd/config.toml", "etc/docker/daemon.json", "etc/crio/crio.conf",
        "etc/crio/crio.conf.d/99-nvidia.conf", "etc/containerd/conf.d/99-nvidia.toml",
        "var/lib/rancher/k3s/agent/etc/containerd/config.toml"}) {
    named = named || look.files.Text(path, kMaxSpec).value.find("nvidia") != std::string::npos;
  }
  seen.Set("runtime_config", named ? "nvidia" : "none",
           named ? std::string() : "no container runtime's configuration names nvidia");
}

// "6.4.1" of "6.4.1-83".
std::string VersionHead(const std::string& text) {
  return text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size()));
}

void CollectRocm(const Look& look, Observations& seen) {
  const auto* runtime = FactOf(look, Vendor::kAmd, "runtime");
  std::string version = runtime != nullptr && runtime->known() ? VersionHead(runtime->value) : "";
  for (const std::string& name : look.files.List("opt").value) {
    if (version.empty() && name.starts_with("rocm-")) version = VersionHead(name.substr(5));
  }
  if (!version.empty()) {
    seen.Set("rocm", version, "ROCm " + version + " is installed");
  } else if (look.visible.usr && look.visible.opt) {
    const bool mesa = look.files.List("usr/lib/x86_64-linux-gnu/dri").known() ||
                      look.files.List("usr/lib64/dri").known();
    seen.Set("rocm", "none", std::string("no /opt/rocm") + (mesa ? ", Mesa is installed" : ""));
  } else {
    seen.SetUnknown("rocm", "/opt and /usr cannot be seen");
  }
  const auto driver = look.files.Text("sys/module/amdgpu/version");
  if (!driver.known()) return;
  const std::string newest = NewestRuntime("amd", driver.value);
  if (!newest.empty()) {
    seen.Set("rocm.driver_max", newest,
             "amdgpu " + driver.value + " supports ROCm up to " + newest);
  }
}

// The newest CUDA toolkit on the node itself, by the names of its folders.
void CollectCuda(const Look& look, const std::string& driver, Observations& seen) {
  std::string version;
  for (const std::string& name : look.files.List("usr/local").value) {
    if (name.starts_with("cuda-") && name.find('.') != std::string::npos) {
      version = VersionHead(name.substr(5));
    }
  }
  if (!version.empty()) {
    const std::string evidence = "/usr/local/cuda-" + version + " is installed";
    seen.Set("cuda", version, evidence);
    seen.Set("cuda.major", Major(version), evidence);
  }
  const std::string newest = driver.empty() ? driver : NewestRuntime("nvidia", driver);
  if (newest.empty()) return;
  const std::string evidence = "driver " + driver + " supports CUDA up to " + newest;
  seen.Set("cuda.driver_max", newest, evidence);
  seen.Set("cuda.driver_major", Major(newest), evidence);
}

// What a PyTorch in one of the usual places is built for, by its own version file.
void CollectTorch(const Look& look, Observations& seen) {
  for (const std::string base : {"usr/lib", "usr/local/lib", "opt/venv/lib", "opt/conda/lib"}) {
    for (const std::string& python : look.files.List(base).value) {
      if (!python.starts_with("python3")) continue;
      for (const std::string packages : {"site-packages", "dist-packages"}) {
        const std::string path = base + "/" + python + "/" + packages + "/torch/version.py";
        const auto text = look.files.Text(path);
        if (!text.known()) continue;
        const bool rocm = text.value.find("+rocm") != std::string::npos;
        const bool cuda = text.value.find("+cu") != std::string::npos;
        if (rocm || cuda) {
          return seen.Set("torch", rocm ? "rocm" : "cuda",
                          "/" + path + " is a " + (rocm ? "ROCm" : "CUDA") + " build");
        }
      }
    }
  }
}

}  // namespace

void CollectContainers(const Look& look, Observations& seen) {
  const auto driver = seen.Get("nvidia.driver").value;
  if (seen.Get("nvidia.gpus").value.value != "0") {
    CollectToolkit(look, seen);
    CollectCdi(look, seen);
    CollectCuda(look, driver.known() ? driver.value : std::string(), seen);
  }
  if (seen.Get("amd.gpus").value.value != "0") {
    CollectRocm(look, seen);
    CollectTorch(look, seen);
  }
}

}  // namespace bimetal::agent
