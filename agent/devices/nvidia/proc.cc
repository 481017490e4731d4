#include "agent/devices/nvidia/proc.h"

#include <algorithm>
#include <utility>

namespace bimetal::agent {
namespace {

// "Key: <tabs and spaces> value" a line.
std::map<std::string, std::string> ParseInformation(std::string_view text) {
  std::map<std::string, std::string> info;
  for (const std::string_view line : Lines(text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    info[std::string(Trim(line.substr(0, colon)))] = std::string(Trim(line.substr(colon + 1)));
  }
  return info;
}

bool IsVersion(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9' &&
         word.find('.') != std::string_view::npos &&
         word.find_first_not_of("0123456789.") == std::string_view::npos;
}

// First word of the NVRM line that looks like a version; the words before it vary by flavour.
Reading<std::string> ParseVersion(const Reading<std::string>& text) {
  if (!text.known()) return text;
  std::string_view line = Lines(text.value)[0];
  while (!line.empty()) {
    const auto end = line.find_first_of(" \t");
    if (IsVersion(line.substr(0, end))) {
      return Reading<std::string>::Of(std::string(line.substr(0, end)));
    }
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return Reading<std::string>::Failed("no version in proc/driver/nvidia/version");
}

// The open module says so in its first line.
Reading<std::string> ParseFlavor(const Reading<std::string>& text) {
  if (!text.known()) return text;
  const std::string_view line = Lines(text.value)[0];
  if (line.find("Open Kernel Module") != std::string_view::npos) {
    return Reading<std::string>::Of("open");
  }
  if (line.find("Kernel Module") != std::string_view::npos) {
    return Reading<std::string>::Of("proprietary");
  }
  return Reading<std::string>::Failed("no flavour in proc/driver/nvidia/version");
}

}  // namespace

bool ProcGpu::Excluded() const {
  const auto found = info.find("GPU Excluded");
  return found != info.end() && found->second == "Yes";
}

Reading<std::string> ProcGpu::Get(const std::string& key) const {
  const auto found = info.find(key);
  if (found == info.end()) {
    return Reading<std::string>::Unknown(why.empty() ? "the driver prints no '" + key + "'" : why);
  }
  if (found->second.empty() || found->second == "N/A" || found->second.starts_with("??")) {
    return Reading<std::string>::Unknown("the driver prints '" + key + "' as not available");
  }
  return Reading<std::string>::Of(found->second);
}

ProcNvidia ReadProcNvidia(const RootFiles& files) {
  ProcNvidia out;
  const auto version = files.Text("proc/driver/nvidia/version");
  out.driver = ParseVersion(version);
  out.flavor = ParseFlavor(version);
  if (!out.driver.known()) {
    const auto module = files.Text("sys/module/nvidia/version");
    if (module.known()) out.driver = module;
  }
  const std::string folder = "proc/driver/nvidia/gpus";
  const auto names = files.List(folder);
  out.present = names.known();
  for (const std::string& name : names.value) {
    ProcGpu gpu;
    gpu.address = NormalPciAddress(name);
    const auto text = files.Text(folder + "/" + name + "/information");
    if (text.known()) {
      gpu.info = ParseInformation(text.value);
    } else {
      gpu.why = text.why;
    }
    out.gpus.push_back(std::move(gpu));
  }
  return out;
}

std::string NormalPciAddress(std::string_view text) {
  std::string out(Trim(text));
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto colon = out.find(':');
  if (colon == std::string::npos) return out;
  while (out.find(':') > 4 && out.front() == '0') out.erase(0, 1);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

}  // namespace bimetal::agent
