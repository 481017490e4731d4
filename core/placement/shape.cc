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

std::string ShapeOfDevices(const Variant& variant) {
  std::string shape;
  Append(shape, variant.min_memory_bytes.value_or(-1));
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
  }
  return shape;
}

}  // namespace bimetal::core::placement
