#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "agent/devices/device_fields.h"
#include "agent/devices/source.h"

// How golden files write what was read: numbers as text, "?" for unknown, "!" for an error.
namespace bimetal::agent::golden {

using Json = nlohmann::json;

inline Json ToJson(const std::string& value) { return value; }
inline Json ToJson(std::int64_t value) { return std::to_string(value); }
inline Json ToJson(bool value) { return value ? "true" : "false"; }
inline Json ToJson(const std::map<std::string, std::string>& value) { return value; }
inline Json ToJson(const std::map<std::string, std::int64_t>& value) {
  Json out = Json::object();
  for (const auto& [name, n] : value) out[name] = std::to_string(n);
  return out;
}
inline Json ToJson(const std::vector<std::string>& value) {
  std::string out;
  for (const std::string& one : value) out += (out.empty() ? "" : ",") + one;
  return out;
}
inline Json ToJson(const std::vector<DeviceLink>& value) {
  std::string out;
  for (const DeviceLink& link : value) {
    out += (out.empty() ? "" : ",") + link.kind + " " + link.peer + " " +
           std::to_string(link.active) + "/" + std::to_string(link.count);
  }
  return out;
}
inline Json ToJson(const std::vector<GpuProcess>& value) {
  std::string out;
  for (const GpuProcess& one : value) out += (out.empty() ? "" : ",") + std::to_string(one.pid);
  return out;
}

template <class T>
Json Shown(const Reading<T>& reading) {
  if (reading.state == Known::kError) return "!";
  return reading.known() ? ToJson(reading.value) : Json("?");
}

inline Json Fields(const Device& device) {
  Json out;
  VisitReadings(
      [&](std::string_view name, const auto& reading) { out[std::string(name)] = Shown(reading); },
      device);
  return out;
}

inline Json Fields(const Telemetry& telemetry) {
  Json out;
  VisitTelemetry(
      [&](std::string_view name, const auto& reading) { out[std::string(name)] = Shown(reading); },
      telemetry);
  return out;
}

// What the file says of all devices, and then of this one.
inline Json Merged(const Json& each, const Json& one) {
  Json out = each;
  for (const auto& [name, value] : one.items()) out[name] = value;
  return out;
}

// The golden files of `folder`, by name without ".json", sorted.
inline std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& file : std::filesystem::directory_iterator(folder, code)) {
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A golden file's name as the name of a test.
inline std::string TestName(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace bimetal::agent::golden
