#include "core/placement/shape.h"

#include <algorithm>
#include <string_view>

namespace bimetal::core::placement {
namespace {

// Length first, so that no text can imitate two.
void Append(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

void Append(std::string& out, std::int64_t number) {
  out += std::to_string(number);
  out += ';';
}

void Append(std::string& out, const std::vector<NodeRequirement>& requirements) {
  Append(out, static_cast<std::int64_t>(requirements.size()));
  for (const NodeRequirement& requirement : requirements) {
    Append(out, requirement.key);
    Append(out, requirement.op);
    Append(out, static_cast<std::int64_t>(requirement.values.size()));
    for (const std::string& value : requirement.values) Append(out, value);
  }
}

}  // namespace

bool Matches(const Device& device, const Variant& variant) {
  if (device.capacity < kWholeDevice) return false;
  if (variant.min_memory_bytes &&
      (!device.memory_bytes || *device.memory_bytes < *variant.min_memory_bytes)) {
    return false;
  }
  return variant.models.empty() || std::find(variant.models.begin(), variant.models.end(),
                                             device.model) != variant.models.end();
}

bool MayProve(const NodeDevices& devices, const Variant& variant) {
  if (variant.precisions.empty() && variant.min_validation_level == 0) return true;
  const bool any_open = std::any_of(devices.devices.begin(), devices.devices.end(),
                                    [](const Device& device) { return device.open; });
  return !any_open || (devices.validation_level >= variant.min_validation_level &&
                       std::includes(devices.precisions.begin(), devices.precisions.end(),
                                     variant.precisions.begin(), variant.precisions.end()));
}

std::string ShapeOfDevices(const Variant& variant) {
  std::string shape;
  Append(shape, variant.min_memory_bytes.value_or(-1));
  Append(shape, static_cast<std::int64_t>(variant.min_validation_level));
  Append(shape, static_cast<std::int64_t>(variant.precisions.size()));
  for (const std::string& precision : variant.precisions) Append(shape, precision);
  std::vector<std::string> models = variant.models;
  std::sort(models.begin(), models.end());
  for (const std::string& model : models) Append(shape, model);
  return shape;
}

std::string ShapeOfConstraints(const Role& role) {
  std::string shape;
  for (const auto& [key, value] : role.node_selector) {
    Append(shape, key);
    Append(shape, value);
  }
  shape += '|';
  for (const Toleration& toleration : role.tolerations) {
    for (const auto* text :
         {&toleration.key, &toleration.op, &toleration.value, &toleration.effect}) {
      Append(shape, *text);
    }
  }
  for (const NodeTerm& term : role.node_affinity) {
    shape += '|';
    Append(shape, term.labels);
    Append(shape, term.fields);
  }
  shape += '|';
  for (const NodeName& node : role.avoid) Append(shape, node.value);
  return shape;
}

std::string ShapeOf(const Job& job, const Variant& variant) {
  std::string shape;
  Append(shape, VendorName(variant.vendor));
  Append(shape, variant.devices_per_pod);
  Append(shape, ShapeOfDevices(variant));
  for (const Role& role : job.roles) {
    for (const std::int64_t number :
         {role.replicas, role.requests.cpu_milli, role.requests.memory_bytes, role.requests.pods}) {
      Append(shape, number);
    }
    Append(shape, ShapeOfConstraints(role));
    if (!role.topology) continue;
    Append(shape, role.topology->level);
    Append(shape, static_cast<std::int64_t>(role.topology->mode));
  }
  return shape;
}

}  // namespace bimetal::core::placement
