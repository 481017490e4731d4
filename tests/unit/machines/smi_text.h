#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bimetal::machines {

// A GPU as the text of `nvidia-smi -q` shows it: values by the path of their keys,
// "PCI/GPU Link Info/Link Width/Max".
struct SmiGpu {
  std::map<std::string, std::string> values;
  std::vector<std::map<std::string, std::string>> instances;  // MIG devices
};

struct SmiText {
  std::string driver;
  std::string cuda;
  std::vector<SmiGpu> gpus;
};

// The first `nvidia-smi -q` of a text, which may have other sections before and behind it.
SmiText ParseSmiText(std::string_view text);

// Identities and links that the -q text does not have: nvidia-smi -L and nvlink -s of the same
// capture.
struct SmiExtras {
  std::vector<std::string> instance_uuids;
  std::vector<std::string> instance_profiles;
  int nvlinks = 0;  // that are up
};
SmiExtras ParseSmiExtras(std::string_view text);

// The same of `nvidia-smi -q -x`. The XML gives instances no UUID: `extras` gets those that drivers
// of its age made, MIG-<uuid of the GPU>/<GPU instance>/<compute instance>, and no profile.
SmiText ParseSmiXml(std::string_view text, SmiExtras& extras);

// The same machine as answers of the library (machine/nvml.txt): what nvidia-smi prints as N/A is
// not supported.
std::string NvmlTextOf(const SmiText& smi, const SmiExtras& extras);

}  // namespace bimetal::machines
