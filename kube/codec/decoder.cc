#include "kube/codec/decoder.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kube/codec/codec.h"
#include "kube/codec/json.h"

namespace bimetal::kube {
namespace codec_internal {
namespace {

namespace od = simdjson::ondemand;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string_view TypeName(od::json_type type) {
  switch (type) {
    case od::json_type::array:
      return "an array";
    case od::json_type::object:
      return "an object";
    case od::json_type::number:
      return "a number";
    case od::json_type::string:
      return "a string";
    case od::json_type::boolean:
      return "a boolean";
    case od::json_type::null:
      return "null";
  }
  return "something else";
}

tl::unexpected<Error> Mismatch(const Path& path, std::string_view expected, od::json_type found) {
  return FailAt(path, std::string("expected ") + std::string(expected) + ", found " +
                          std::string(TypeName(found)));
}

Result<od::json_type> TypeOf(od::value& value, const Path& path) {
  od::json_type type;
  if (const auto error = value.type().get(type)) return FailAt(path, error);
  return type;
}

Result<std::string_view> String(od::value& value, const FieldInfo& field, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(value, path));
  if (type == od::json_type::string) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return FailAt(path, error);
    return text;
  }
  const bool takes_number = field.format == api::QUANTITY || field.format == api::INT_OR_STRING;
  if (type == od::json_type::number && takes_number) {
    double checked = 0;  // the token must be a number of JSON, not only begin like one
    std::string_view token = value.raw_json_token();
    if (const auto error = value.get_double().get(checked)) return FailAt(path, error);
    token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
    return token;
  }
  return Mismatch(path, takes_number ? "a string or a number" : "a string", type);
}

Result<std::int64_t> Quoted(od::value& value, const Path& path) {
  std::string_view text;
  if (const auto error = value.get_string().get(text)) return FailAt(path, error);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return FailAt(path, "expected an integer, found a string that is not one");
  }
  return number;
}

// Whole numbers written with a point or an exponent (2.0, 1e3) are integers to the API server too.
Result<std::int64_t> Integer(od::value& value, const FieldInfo& field, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(value, path));
  if (type == od::json_type::string && field.format != api::PLAIN) return Quoted(value, path);
  if (type != od::json_type::number) return Mismatch(path, "an integer", type);
  od::number number;
  if (const auto error = value.get_number().get(number)) return FailAt(path, error);
  if (number.is_int64()) return number.get_int64();
  if (number.is_uint64()) return FailAt(path, "integer out of range");
  const double real = number.get_double();
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
  if (std::trunc(real) != real) return FailAt(path, "expected an integer, found a fraction");
  if (std::abs(real) > kExact) return FailAt(path, "integer out of range");
  return static_cast<std::int64_t>(real);
}

Result<bool> Boolean(od::value& value, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(value, path));
  if (type != od::json_type::boolean) return Mismatch(path, "a boolean", type);
  bool result = false;
  if (const auto error = value.get_bool().get(result)) return FailAt(path, error);
  return result;
}

Result<double> Real(od::value& value, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(value, path));
  if (type != od::json_type::number) return Mismatch(path, "a number", type);
  double result = 0;
  if (const auto error = value.get_double().get(result)) return FailAt(path, error);
  return result;
}

// Sets or adds one scalar, whichever the field is. `wire` is the field whose type counts.
class ScalarWriter {
 public:
  ScalarWriter(Message* out, const FieldDescriptor* field)
      : out_(out), reflection_(out->GetReflection()), field_(field) {}

  Status Write(od::value& value, const FieldInfo& info, const Path& path) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return WriteString(value, info, path);
      case FieldDescriptor::CPPTYPE_BOOL: {
        BIMETAL_TRY_ASSIGN(const bool b, Boolean(value, path));
        field_->is_repeated() ? reflection_->AddBool(out_, field_, b)
                              : reflection_->SetBool(out_, field_, b);
        return {};
      }
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64: {
        BIMETAL_TRY_ASSIGN(const std::int64_t n, Integer(value, info, path));
        return WriteInteger(n, path);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        BIMETAL_TRY_ASSIGN(const double d, Real(value, path));
        field_->is_repeated() ? reflection_->AddDouble(out_, field_, d)
                              : reflection_->SetDouble(out_, field_, d);
        return {};
      }
      case FieldDescriptor::CPPTYPE_ENUM:
        return WriteEnum(value, info, path);
      default:
        return FailAt(path, "field type is not supported by the codec");
    }
  }

 private:
  Status WriteString(od::value& value, const FieldInfo& info, const Path& path) {
    if (field_->type() == FieldDescriptor::TYPE_BYTES) {
      return FailAt(path, "field type is not supported by the codec");
    }
    BIMETAL_TRY_ASSIGN(const std::string_view text, String(value, info, path));
    field_->is_repeated() ? reflection_->AddString(out_, field_, std::string(text))
                          : reflection_->SetString(out_, field_, std::string(text));
    return {};
  }

  Status WriteInteger(std::int64_t n, const Path& path) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        if (n < std::numeric_limits<std::int32_t>::min() ||
            n > std::numeric_limits<std::int32_t>::max()) {
          return FailAt(path, "integer out of range");
        }
        const auto v = static_cast<std::int32_t>(n);
        field_->is_repeated() ? reflection_->AddInt32(out_, field_, v)
                              : reflection_->SetInt32(out_, field_, v);
        return {};
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        if (n < 0 || n > std::numeric_limits<std::uint32_t>::max()) {
          return FailAt(path, "integer out of range");
        }
        const auto v = static_cast<std::uint32_t>(n);
        field_->is_repeated() ? reflection_->AddUInt32(out_, field_, v)
                              : reflection_->SetUInt32(out_, field_, v);
        return {};
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        if (n < 0) return FailAt(path, "integer out of range");
        const auto v = static_cast<std::uint64_t>(n);
        field_->is_repeated() ? reflection_->AddUInt64(out_, field_, v)
                              : reflection_->SetUInt64(out_, field_, v);
        return {};
      }
      default:
        field_->is_repeated() ? reflection_->AddInt64(out_, field_, n)
                              : reflection_->SetInt64(out_, field_, n);
        return {};
    }
  }

  Status WriteEnum(od::value& value, const FieldInfo& info, const Path& path) {
    BIMETAL_TRY_ASSIGN(const std::string_view text, String(value, info, path));
    const auto* known = field_->enum_type()->FindValueByName(std::string(text));
    if (known == nullptr) return FailAt(path, "not one of the known values");
    field_->is_repeated() ? reflection_->AddEnum(out_, field_, known)
                          : reflection_->SetEnum(out_, field_, known);
    return {};
  }

  Message* out_;
  const Reflection* reflection_;
  const FieldDescriptor* field_;
};

Status DecodeObject(od::object& object, const TypeInfo& type, Message* out, const Path& path);
Status DecodeArray(od::value& value, const FieldInfo& field, Message* out, const Path& path);

// A value in the place of a message: an object, or an array for the types that stand for one.
Status DecodeMessage(od::value& value, const TypeInfo& type, Message* out, const Path& path) {
  if (type.is_array) return DecodeArray(value, type.fields[0], out, path);
  BIMETAL_TRY_ASSIGN(const od::json_type found, TypeOf(value, path));
  if (found != od::json_type::object) return Mismatch(path, "an object", found);
  od::object object;
  if (const auto error = value.get_object().get(object)) return FailAt(path, error);
  return DecodeObject(object, type, out, path);
}

// null in an array or a map is the zero value, as Go reads it; the others keep their places.
Status AddZero(const FieldDescriptor* field, Message* out) {
  const Reflection* reflection = out->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      reflection->AddString(out, field, {});
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection->AddBool(out, field, false);
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      reflection->AddInt32(out, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection->AddInt64(out, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection->AddUInt32(out, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection->AddUInt64(out, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection->AddDouble(out, field, 0);
      break;
    default:
      break;
  }
  return {};
}

Status DecodeArray(od::value& value, const FieldInfo& field, Message* out, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type found, TypeOf(value, path));
  if (found != od::json_type::array) return Mismatch(path, "an array", found);
  od::array array;
  if (const auto error = value.get_array().get(array)) return FailAt(path, error);
  const Reflection* reflection = out->GetReflection();
  reflection->ClearField(out, field.field);  // a key given twice: the last one counts
  Path at{&path, {}, 0};
  for (auto element : array) {
    od::value item;
    if (const auto error = element.get(item)) return FailAt(at, error);
    BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(item, at));
    const bool is_null = type == od::json_type::null;
    if (field.child != nullptr) {
      Message* added = reflection->AddMessage(out, field.field);
      if (!is_null) BIMETAL_TRY(DecodeMessage(item, *field.child, added, at));
    } else if (is_null) {
      BIMETAL_TRY(AddZero(field.field, out));
    } else {
      BIMETAL_TRY(ScalarWriter(out, field.field).Write(item, field, at));
    }
    ++at.index;
  }
  return {};
}

Status DecodeMap(od::value& value, const FieldInfo& field, Message* out, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type found, TypeOf(value, path));
  if (found != od::json_type::object) return Mismatch(path, "an object", found);
  od::object object;
  if (const auto error = value.get_object().get(object)) return FailAt(path, error);
  const Reflection* reflection = out->GetReflection();
  reflection->ClearField(out, field.field);
  const FieldDescriptor* map_key = field.field->message_type()->map_key();
  const FieldDescriptor* map_value = field.field->message_type()->map_value();
  if (map_key->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
    return FailAt(path, "field type is not supported by the codec");
  }
  for (auto entry : object) {
    std::string_view key;
    if (const auto error = entry.unescaped_key().get(key)) return FailAt(path, error);
    const Path at{&path, key, -1};
    od::value item;
    if (const auto error = entry.value().get(item)) return FailAt(at, error);
    Message* added = reflection->AddMessage(out, field.field);
    added->GetReflection()->SetString(added, map_key, std::string(key));
    BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(item, at));
    if (type == od::json_type::null) continue;
    if (field.child != nullptr) {
      Message* child = added->GetReflection()->MutableMessage(added, map_value);
      BIMETAL_TRY(DecodeMessage(item, *field.child, child, at));
    } else {
      BIMETAL_TRY(ScalarWriter(added, map_value).Write(item, field, at));
    }
  }
  return {};
}

Status DecodeField(od::value& value, const FieldInfo& field, Message* out, const Path& path) {
  BIMETAL_TRY_ASSIGN(const od::json_type type, TypeOf(value, path));
  const Reflection* reflection = out->GetReflection();
  if (type == od::json_type::null) {
    bool null = false;  // reads the token, so that "nul" is not taken for null
    if (const auto error = value.is_null().get(null)) return FailAt(path, error);
    if (!null) return FailAt(path, "malformed value");
    reflection->ClearField(out, field.field);
    return {};
  }
  if (field.field->is_map()) return DecodeMap(value, field, out, path);
  if (field.field->is_repeated()) return DecodeArray(value, field, out, path);
  if (field.child != nullptr) {
    reflection->ClearField(out, field.field);
    return DecodeMessage(value, *field.child, reflection->MutableMessage(out, field.field), path);
  }
  return ScalarWriter(out, field.field).Write(value, field, path);
}

// The scan for RAW text: brackets outside strings, no deeper than the codec's limit.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Status KeepRaw(od::object& object, const TypeInfo& type, Message* out, const Path& path) {
  std::string_view text;
  if (const auto error = object.raw_json().get(text)) return FailAt(path, error);
  if (IsTooDeep(text)) return FailAt(path, "nested too deeply");
  out->GetReflection()->SetString(out, type.raw, std::string(text));
  bool again = false;
  if (const auto error = object.reset().get(again)) return FailAt(path, error);
  return {};
}

Status DecodeObject(od::object& object, const TypeInfo& type, Message* out, const Path& path) {
  if (type.raw != nullptr) BIMETAL_TRY(KeepRaw(object, type, out, path));
  for (auto entry : object) {
    std::string_view key;
    if (const auto error = entry.unescaped_key().get(key)) return FailAt(path, error);
    const auto it = type.by_name.find(key);
    if (it == type.by_name.end()) continue;  // the iterator skips the value
    const Path at{&path, key, -1};
    od::value value;
    if (const auto error = entry.value().get(value)) return FailAt(at, error);
    BIMETAL_TRY(DecodeField(value, type.fields[it->second], out, at));
  }
  return {};
}

}  // namespace

std::string Path::Text() const {
  std::string text = parent == nullptr ? std::string() : parent->Text();
  if (index >= 0) return text + "[" + std::to_string(index) + "]";
  if (name.empty()) return text;
  // A key with a dot or a slash (a label's) is quoted, so that the path can be read back.
  if (name.find_first_of("./[]\"") != std::string_view::npos) {
    return text + "[" + JsonString(name) + "]";
  }
  return text.empty() ? std::string(name) : text + "." + std::string(name);
}

tl::unexpected<Error> FailAt(const Path& path, std::string_view what) {
  std::string text = path.Text();
  if (!text.empty()) text += ": ";
  return Fail(ErrorCode::kData, text + std::string(what));
}

tl::unexpected<Error> FailAt(const Path& path, simdjson::error_code code) {
  switch (code) {
    case simdjson::EMPTY:
      return FailAt(path, "empty document");
    case simdjson::UTF8_ERROR:
      return FailAt(path, "text is not UTF-8");
    case simdjson::UNCLOSED_STRING:
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return FailAt(path, "document is cut short");
    case simdjson::NUMBER_ERROR:
      return FailAt(path, "number is malformed or out of range");
    case simdjson::DEPTH_ERROR:
      return FailAt(path, "nested too deeply");
    case simdjson::CAPACITY:
      return FailAt(path, "document is too large");
    default:
      return FailAt(path, "malformed JSON");
  }
}

bool AtEnd(od::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

Status DecodeText(od::parser& parser, std::string_view text, const TypeInfo& type, Message* out,
                  const Path& path) {
  out->Clear();
  od::document document;
  const simdjson::padded_string_view view(text.data(), text.size(),
                                          text.size() + simdjson::SIMDJSON_PADDING);
  if (const auto error = parser.iterate(view).get(document)) return FailAt(path, error);
  od::json_type found;
  if (const auto error = document.type().get(found)) return FailAt(path, error);
  if (found != od::json_type::object) return Mismatch(path, "an object", found);
  od::object object;
  if (const auto error = document.get_object().get(object)) return FailAt(path, error);
  BIMETAL_TRY(DecodeObject(object, type, out, path));
  if (!AtEnd(document)) return FailAt(path, "text after the end of the document");
  return {};
}

void DecodeMetadataOnly(std::string_view padded_text, Message* out) {
  out->Clear();
  const FieldDescriptor* field = out->GetDescriptor()->FindFieldByName("metadata");
  if (field == nullptr || field->message_type() == nullptr || field->is_repeated()) return;
  od::parser parser;
  od::document document;
  const simdjson::padded_string_view view(padded_text.data(), padded_text.size(),
                                          padded_text.size() + simdjson::SIMDJSON_PADDING);
  if (parser.iterate(view).get(document)) return;
  std::string_view text;
  od::object metadata;
  if (document["metadata"].get_object().get(metadata)) return;
  if (metadata.raw_json().get(text)) return;
  // A name is all that is asked for; on an error what was read before it stays.
  od::parser inner;
  Message* target = out->GetReflection()->MutableMessage(out, field);
  static_cast<void>(DecodeText(inner, text, TypeInfoOf(field->message_type()), target, Path{}));
}

}  // namespace codec_internal

Status FromJson(std::string_view json, google::protobuf::Message* out) {
  const simdjson::padded_string padded(json);
  simdjson::ondemand::parser parser;
  return codec_internal::DecodeText(parser, padded, TypeInfoOf(out->GetDescriptor()), out, {});
}

}  // namespace bimetal::kube
