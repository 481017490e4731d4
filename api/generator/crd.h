#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "api/generator/document.h"

namespace bimetal::api {

// The kinds of group bimetal.dev that a file declares, in its order.
std::vector<const google::protobuf::Descriptor*> KindsOf(
    const google::protobuf::FileDescriptor& file);

// The apiextensions.k8s.io/v1 CustomResourceDefinition of a kind. Adds a line to `errors` for
// everything that cannot be said in one; the result is then of no use.
Document CrdOf(const google::protobuf::Descriptor& message, std::vector<std::string>* errors);

}  // namespace bimetal::api
