#include "agent/devices/labels.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxLabel = 63;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsLegal(char c) { return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-'; }

}  // namespace

std::string CleanLabel(std::string_view raw) {
  std::string label;
  for (const char c : raw) {
    const char kept = IsLegal(c) ? c : '-';
    if (label.empty() && !IsAlphanumeric(kept)) continue;
    if (kept == '-' && !label.empty() && label.back() == '-') continue;
    label += kept;
  }
  if (label.size() > kMaxLabel) label.resize(kMaxLabel);
  while (!label.empty() && !IsAlphanumeric(label.back())) label.pop_back();
  return label;
}

std::map<std::string, std::set<std::string>> LabelClashes(const std::set<std::string>& raw_names) {
  std::map<std::string, std::set<std::string>> by_label;
  for (const std::string& raw : raw_names) by_label[CleanLabel(raw)].insert(raw);
  std::erase_if(by_label,
                [](const auto& entry) { return entry.first.empty() || entry.second.size() < 2; });
  return by_label;
}

}  // namespace bimetal::agent
