#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "api/generator/document.h"

namespace bimetal::api {

// What the comments above and beside a declaration say, as one paragraph a line. A sentence may go
// over several comment lines; an empty comment line starts a new paragraph.
std::string CommentOf(const google::protobuf::FieldDescriptor& field);
std::string CommentOf(const google::protobuf::Descriptor& message);

// True for the field that only carries the raw JSON of its object and is no field of the API.
bool IsRaw(const google::protobuf::FieldDescriptor& field);
// True where a client must set the field: marked so, or the key of its list.
bool IsRequired(const google::protobuf::FieldDescriptor& field);

// The structural OpenAPI v3 schema of a message, as apiextensions.k8s.io/v1 wants it. `list_keys`
// are fields that are required because they are the keys of the list whose items these are. Adds a
// line to `errors` for everything that no schema can be made of; the result is then of no use.
Document SchemaOf(const google::protobuf::Descriptor& message,
                  const std::vector<std::string>& list_keys, std::vector<std::string>* errors);

}  // namespace bimetal::api
