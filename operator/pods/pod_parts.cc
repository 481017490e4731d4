#include "operator/pods/pod_parts.h"

#include <algorithm>
#include <vector>

namespace bimetal::op {

void SetEnv(Json& env, const std::string& name, const Json& entry) {
  for (auto& existing : env) {
    if (existing.value("name", "") == name) {
      existing = entry;
      return;
    }
  }
  env.push_back(entry);
}

void SetEnv(Json& env, const std::string& name, const std::string& value) {
  SetEnv(env, name, Json{{"name", name}, {"value", value}});
}

void AddCollectiveEnv(Json& env, core::Vendor vendor) {
  const auto add = [&](const char* name, const char* value) {
    const bool set = std::any_of(
        env.begin(), env.end(), [&](const Json& entry) { return entry.value("name", "") == name; });
    if (!set) SetEnv(env, name, std::string(value));
  };
  add("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  // RCCL reads NCCL's names; ROCm documents this one for multi-device work on MI300.
  if (vendor == core::Vendor::kAmd) add("HSA_NO_SCRATCH_RECLAIM", "1");
}

void ApplyVariant(Json& container, const api::Variant& variant, const std::string& resource_name) {
  container["image"] = variant.image();
  if (variant.command_size() > 0) {
    container["command"] =
        std::vector<std::string>(variant.command().begin(), variant.command().end());
  }
  if (variant.args_size() > 0) {
    container["args"] = std::vector<std::string>(variant.args().begin(), variant.args().end());
  }
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  for (const auto& entry : variant.env()) {
    const Json raw = entry.raw().empty() ? Json{{"name", entry.name()}, {"value", entry.value()}}
                                         : Json::parse(entry.raw());
    SetEnv(env, entry.name(), raw);
  }
  container["resources"]["limits"][resource_name] = std::to_string(variant.devices_per_pod());
}

Json SpecOfTemplate(const std::string& raw) {
  Json spec = raw.empty() ? Json::object() : Json::parse(raw);
  if (!spec["containers"].is_array() || spec["containers"].empty()) {
    spec["containers"] = Json::array({{{"name", "main"}}});
  }
  return spec;
}

void SetPodPriority(Json& spec, const std::string& priority_class) {
  spec["priorityClassName"] = priority_class;
  spec.erase("priority");
  spec.erase("preemptionPolicy");
}

Json OwnedMetadata(const std::string& kind, const api::ObjectMeta& owner, const std::string& name) {
  Json meta;
  meta["name"] = name;
  meta["namespace"] = owner.namespace_();
  meta["ownerReferences"] = Json::array({{{"apiVersion", "bimetal.dev/v1alpha1"},
                                          {"kind", kind},
                                          {"name", owner.name()},
                                          {"uid", owner.uid()},
                                          {"controller", true}}});
  return meta;
}

}  // namespace bimetal::op
