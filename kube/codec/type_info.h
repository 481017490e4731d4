#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "api/options.pb.h"

namespace bimetal::kube {

struct TypeInfo;

// What the codec needs to know about a field, read once from descriptor and options.
struct FieldInfo {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string_view json_name;
  api::Format format = api::PLAIN;
  bool required = false;
  // Message fields; for maps the type of the value where that is a message.
  const TypeInfo* child = nullptr;
};

struct TypeInfo {
  const google::protobuf::Descriptor* descriptor = nullptr;
  // In the order of the .proto, without the RAW field.
  std::vector<FieldInfo> fields;
  std::unordered_map<std::string_view, std::size_t> by_name;
  const google::protobuf::FieldDescriptor* raw = nullptr;
  // A JSON array in the place of a message: the one field `repeated items`.
  bool is_array = false;
  bool is_kind = false;
};

// Thread-safe; the answer lives as long as the process.
const TypeInfo& TypeInfoOf(const google::protobuf::Descriptor* descriptor);

}  // namespace bimetal::kube
