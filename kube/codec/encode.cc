#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "api/options.pb.h"
#include "core/base/log.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "kube/codec/type_info.h"

namespace bimetal::kube {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void WriteMessage(const Message& message, const TypeInfo& type, bool is_root, std::string& out);

void WriteString(std::string_view text, std::string& out) {
  out += '"';
  AppendJsonEscaped(out, text);
  out += '"';
}

void WriteReal(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

// The scalar or message of `field`; element `index` of a repeated one.
void WriteValue(const Message& message, const FieldInfo& info, const FieldDescriptor* field,
                int index, std::string& out) {
  const Reflection* r = message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      WriteString(many ? r->GetRepeatedStringReference(message, field, index, &scratch)
                       : r->GetStringReference(message, field, &scratch),
                  out);
      break;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      out += (many ? r->GetRepeatedBool(message, field, index) : r->GetBool(message, field))
                 ? "true"
                 : "false";
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      out += std::to_string(many ? r->GetRepeatedInt32(message, field, index)
                                 : r->GetInt32(message, field));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      out += std::to_string(many ? r->GetRepeatedInt64(message, field, index)
                                 : r->GetInt64(message, field));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      out += std::to_string(many ? r->GetRepeatedUInt32(message, field, index)
                                 : r->GetUInt32(message, field));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      out += std::to_string(many ? r->GetRepeatedUInt64(message, field, index)
                                 : r->GetUInt64(message, field));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      WriteReal(many ? r->GetRepeatedDouble(message, field, index) : r->GetDouble(message, field),
                out);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      WriteReal(many ? r->GetRepeatedFloat(message, field, index) : r->GetFloat(message, field),
                out);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      WriteString(
          (many ? r->GetRepeatedEnum(message, field, index) : r->GetEnum(message, field))->name(),
          out);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      WriteMessage(
          many ? r->GetRepeatedMessage(message, field, index) : r->GetMessage(message, field),
          *info.child, false, out);
      break;
  }
}

void WriteArray(const Message& message, const FieldInfo& info, std::string& out) {
  const int size = message.GetReflection()->FieldSize(message, info.field);
  out += '[';
  for (int i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    WriteValue(message, info, info.field, i, out);
  }
  out += ']';
}

void WriteMap(const Message& message, const FieldInfo& info, std::string& out) {
  const Reflection* r = message.GetReflection();
  const FieldDescriptor* map_key = info.field->message_type()->map_key();
  const FieldDescriptor* map_value = info.field->message_type()->map_value();
  std::vector<std::pair<std::string, const Message*>> entries;
  for (int i = 0; i < r->FieldSize(message, info.field); ++i) {
    const Message& entry = r->GetRepeatedMessage(message, info.field, i);
    entries.emplace_back(entry.GetReflection()->GetString(entry, map_key), &entry);
  }
  // Stable, so that of equal keys the last one, which counts, is the last here too.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  out += '{';
  bool first = true;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i + 1 < entries.size() && entries[i].first == entries[i + 1].first) continue;
    if (!std::exchange(first, false)) out += ',';
    WriteString(entries[i].first, out);
    out += ':';
    WriteValue(*entries[i].second, info, map_value, 0, out);
  }
  out += '}';
}

bool IsNumberOrBool(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
    case FieldDescriptor::CPPTYPE_MESSAGE:
    case FieldDescriptor::CPPTYPE_ENUM:
      return false;
    default:
      return true;
  }
}

// A required number or boolean is written even where it is zero, for zero may be its value. A
// required string that is empty is left out: "required value" is the server's better complaint.
bool IsWritten(const Message& message, const FieldInfo& info) {
  const Reflection* r = message.GetReflection();
  if (info.field->is_repeated()) return r->FieldSize(message, info.field) > 0;
  return r->HasField(message, info.field) || (info.required && IsNumberOrBool(*info.field));
}

class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void Key(std::string_view name) {
    if (!std::exchange(first_, false)) out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void End() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

void WriteKind(const TypeInfo& type, ObjectWriter& writer, std::string& out) {
  const api::Kind& kind = type.descriptor->options().GetExtension(api::kind);
  writer.Key("apiVersion");
  WriteString(kind.group().empty() ? kind.version() : kind.group() + "/" + kind.version(), out);
  writer.Key("kind");
  WriteString(kind.kind(), out);
}

void WriteMessage(const Message& message, const TypeInfo& type, bool is_root, std::string& out) {
  if (type.is_array) {
    WriteArray(message, type.fields[0], out);
    return;
  }
  if (type.raw != nullptr) {
    std::string scratch;
    const std::string& raw =
        message.GetReflection()->GetStringReference(message, type.raw, &scratch);
    if (!raw.empty()) {
      out += raw;
      return;
    }
  }
  ObjectWriter writer(out);
  if (is_root && type.is_kind) WriteKind(type, writer, out);
  for (const FieldInfo& info : type.fields) {
    if (!IsWritten(message, info)) continue;
    writer.Key(info.json_name);
    if (info.field->is_map()) {
      WriteMap(message, info, out);
    } else if (info.field->is_repeated()) {
      WriteArray(message, info, out);
    } else {
      WriteValue(message, info, info.field, 0, out);
    }
  }
  writer.End();
}

}  // namespace

std::string ToJson(const Message& message) {
  std::string out;
  WriteMessage(message, TypeInfoOf(message.GetDescriptor()), true, out);
  return out;
}

}  // namespace bimetal::kube
