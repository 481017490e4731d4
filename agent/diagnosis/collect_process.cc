// Facts of processes: fabricmanager (running, absent), hsa_override (yes, no), process.foreign of
// the devices that a process outside of every pod uses. Of an environment only the one variable is
// told.
#include <set>

#include "agent/diagnosis/collect.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxProcesses = 8192;
constexpr std::size_t kMaxShown = 3;
constexpr std::size_t kMaxEnvironment = 256UL * 1024;
constexpr std::string_view kOverride = "HSA_OVERRIDE_GFX_VERSION";

// Programs of the node itself that hold devices and leave them free for jobs.
constexpr std::string_view kHouseholders[] = {
    "nvidia-persiste", "nv-fabricmanage", "nv-hostengine",   "dcgm-exporter", "dcgm",
    "nvidia-smi",      "nvidia-device-p", "bimetal-agent",   "bimetal",       "bimetal-validat",
    "amd-smi",         "rocm-smi",        "amd-gpu-exporte", "Xorg",          "gnome-shell"};

bool IsHouseholder(std::string_view name) {
  for (const std::string_view known : kHouseholders) {
    if (name == known) return true;
  }
  return false;
}

// The value of the variable in a block of NAME=VALUE texts that end with `end`; nothing where it is
// not set.
std::optional<std::string> OverrideIn(std::string_view text, char end) {
  while (!text.empty()) {
    const auto stop = text.find(end);
    std::string_view entry = Trim(text.substr(0, stop));
    if (entry.starts_with("export ")) entry = Trim(entry.substr(7));
    if (entry.starts_with(kOverride)) {
      entry.remove_prefix(kOverride.size());
      // HSA_OVERRIDE_GFX_VERSION_1 is for one node.
      const auto equals = entry.find('=');
      if (equals != std::string_view::npos && (equals == 0 || entry.front() == '_')) {
        return std::string(entry.substr(equals + 1, 32));
      }
    }
    if (stop == std::string_view::npos) break;
    text.remove_prefix(stop + 1);
  }
  return std::nullopt;
}

void CollectOverrideFiles(const Look& look, std::vector<std::string>& found) {
  std::vector<std::string> paths = {"etc/environment",    "etc/profile",  "etc/bash.bashrc",
                                    "etc/default/ollama", "root/.bashrc", "root/.profile"};
  for (const char* folder : {"etc/profile.d", "etc/environment.d"}) {
    for (const std::string& name : look.files.List(folder).value) {
      paths.push_back(folder + ("/" + name));
    }
  }
  for (const std::string& path : paths) {
    const auto text = look.files.Text(path);
    if (!text.known()) continue;
    if (const auto value = OverrideIn(text.value, '\n')) {
      found.push_back("/" + path + ": " + std::string(kOverride) + "=" + *value);
    }
  }
}

// True: at least one environment could be read.
bool CollectOverrideProcesses(const Look& look, const std::set<std::string>& ids,
                              std::vector<std::string>& found) {
  bool any = false;
  for (const std::string& id : ids) {
    const auto bytes = look.files.Bytes("proc/" + id + "/environ", kMaxEnvironment);
    any = any || bytes.known();
    if (!bytes.known()) continue;
    if (const auto value = OverrideIn(bytes.value, '\0')) {
      const auto name = look.files.Text("proc/" + id + "/comm");
      found.push_back("process " + id + " (" + name.value + "): " + std::string(kOverride) + "=" +
                      *value);
    }
  }
  return any;
}

void SetOverride(const std::vector<std::string>& found, Observations& seen) {
  std::string evidence;
  for (std::size_t i = 0; i < found.size() && i < kMaxShown; ++i) {
    evidence += (i == 0 ? "" : "; ") + found[i];
  }
  if (found.size() > kMaxShown) {
    evidence += "; and " + std::to_string(found.size() - kMaxShown) + " more";
  }
  seen.Set("hsa_override", found.empty() ? "no" : "yes", evidence);
}

// True: the process runs in a pod. Nothing: its cgroup cannot be read.
std::optional<bool> InPod(const Look& look, const std::string& id) {
  const auto cgroup = look.files.Text("proc/" + id + "/cgroup");
  if (!cgroup.known()) return std::nullopt;
  return cgroup.value.find("kubepods") != std::string::npos;
}

bool IsKubernetesNode(const Look& look, const std::set<std::string>& names) {
  return names.contains("kubelet") || names.contains("k3s-server") || names.contains("k3s-agent") ||
         names.contains("k0s") || look.files.Exists("var/lib/kubelet/config.yaml");
}

// Who uses which device, by the inventory: process ids by device id.
std::map<std::string, std::set<std::string>> UsersOf(const Inventory& inventory) {
  std::map<std::string, std::set<std::string>> users;
  for (const auto& [device, telemetry] : inventory.telemetry) {
    if (!telemetry.processes.known()) continue;
    for (const GpuProcess& process : telemetry.processes.value) {
      users[device].insert(std::to_string(process.pid));
    }
  }
  return users;
}

void CollectForeign(const Look& look, const std::map<std::string, std::set<std::string>>& users,
                    Observations& seen) {
  for (const auto& [device, ids] : users) {
    std::string evidence;
    for (const std::string& id : ids) {
      const auto name = look.files.Text("proc/" + id + "/comm");
      const auto in_pod = InPod(look, id);
      if (!in_pod || *in_pod || IsHouseholder(name.value)) continue;
      evidence += (evidence.empty() ? "process " : ", process ") + id + " (" + name.value + ")";
    }
    seen.SetFor(device, "process.foreign", evidence.empty() ? "no" : "yes", evidence);
  }
}

std::set<std::string> AllProcesses(const Look& look) {
  std::set<std::string> ids;
  for (const std::string& name : look.files.List("proc").value) {
    if (!name.empty() && name[0] >= '0' && name[0] <= '9' && ids.size() < kMaxProcesses) {
      ids.insert(name);
    }
  }
  return ids;
}

std::set<std::string> NamesOf(const Look& look, const std::set<std::string>& ids) {
  std::set<std::string> names;
  for (const std::string& id : ids) names.insert(look.files.Text("proc/" + id + "/comm").value);
  return names;
}

void CollectOverrides(const Look& look, const std::set<std::string>& ids, Observations& seen) {
  std::vector<std::string> found;
  CollectOverrideFiles(look, found);
  const bool readable = CollectOverrideProcesses(look, ids, found);
  if (found.empty() && !readable && !ids.empty()) {
    return seen.SetUnknown("hsa_override", "no process's environment can be read");
  }
  SetOverride(found, seen);
}

}  // namespace

void CollectProcesses(const Look& look, Observations& seen) {
  const auto counts = [&](const char* fact) {
    const auto& value = seen.Get(fact).value;
    return value.known() && value.value != "0";
  };
  const bool visible = look.options.processes && look.visible.processes;
  if (!visible) {
    if (counts("amd.gpus")) CollectOverrides(look, {}, seen);
    return seen.SetUnknown("fabricmanager", "the machine's processes cannot be seen");
  }
  const auto users = UsersOf(look.inventory);
  // A node has thousands of processes: their names are read only where something hangs on them.
  const bool names_matter = counts("nvswitch") || !users.empty();
  const std::set<std::string> ids =
      look.options.every_process || names_matter ? AllProcesses(look) : std::set<std::string>();
  if (names_matter) {
    const auto names = NamesOf(look, ids);
    seen.Set("fabricmanager", names.contains("nv-fabricmanage") ? "running" : "absent",
             "no process nv-fabricmanager");
    if (IsKubernetesNode(look, names)) CollectForeign(look, users, seen);
  }
  if (!counts("amd.gpus")) return;
  std::set<std::string> environments = ids;
  if (!look.options.every_process) {
    environments.clear();
    for (const auto& [device, processes] : users) {
      environments.insert(processes.begin(), processes.end());
    }
  }
  CollectOverrides(look, environments, seen);
}

}  // namespace bimetal::agent
