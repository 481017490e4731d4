#pragma once

#include <string>

#include "api/gpujob.pb.h"
#include "api/meta.pb.h"
#include "core/model/vendor.h"
#include "operator/pods/json.h"

// What the pods of jobs and of services have in common. Private to operator/pods.
namespace bimetal::op {

// Puts `entry`, a variable of a container, in the place of an entry of the same name, or at the
// end.
void SetEnv(Json& env, const std::string& name, const Json& entry);
void SetEnv(Json& env, const std::string& name, const std::string& value);

// Collective settings that are safe everywhere: a lost peer ends the program instead of hanging it.
// The user's own values win.
void AddCollectiveEnv(Json& env, core::Vendor vendor);

// Image, command, environment and devices of the variant, in the pod's first container.
void ApplyVariant(Json& container, const api::Variant& variant, const std::string& resource_name);

// The template's pod spec with at least one container.
Json SpecOfTemplate(const std::string& raw);

// `priority_class` for the pod, and nothing of the template's own.
void SetPodPriority(Json& spec, const std::string& priority_class);

// Name, namespace and the one who owns it.
Json OwnedMetadata(const std::string& kind, const api::ObjectMeta& owner, const std::string& name);

}  // namespace bimetal::op
