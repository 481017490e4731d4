#pragma once

#include <string>

#include "api/pod.pb.h"
#include "core/base/result.h"
#include "core/model/job.h"

namespace bimetal::core {

// Reads what placement needs from a role's template into `role` and checks what neither an old
// server nor the pod's own admission would say in time: GPU resources, nodeName, the first
// container's image. Error kInvalid names the field below `path` and the remedy.
Status ReadTemplate(const api::PodTemplateSpec& pod_template, const std::string& path, Role* role);

}  // namespace bimetal::core
