#include "api/generator/schema.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "api/options.pb.h"

namespace bimetal::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Errors = std::vector<std::string>;

// A string without a bound makes the API server assume the size of a whole request when it
// estimates what a CEL rule costs.
constexpr std::int64_t kDefaultMaxLength = 1024;
constexpr std::int64_t kMaxNumberLength = 32;

constexpr const char* kQuantityPattern =
    "^\\+?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))"
    "(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?[0-9]+))?$";
constexpr const char* kDurationPattern = "^(0|([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+)$";
constexpr const char* kDecimalPattern = "^[0-9]{1,9}(\\.[0-9]{1,9})?$";

std::string Paragraphs(std::string_view text) {
  std::string out;
  bool new_paragraph = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    if (line.empty()) {
      new_paragraph = !out.empty();
      continue;
    }
    if (!out.empty()) out += new_paragraph ? '\n' : ' ';
    new_paragraph = false;
    out += line;
  }
  return out;
}

template <class Declaration>
std::string CommentOfDeclaration(const Declaration& declaration) {
  google::protobuf::SourceLocation location;
  if (!declaration.GetSourceLocation(&location)) return "";
  return Paragraphs(location.leading_comments + "\n" + location.trailing_comments);
}

const FieldRules& RulesOf(const FieldDescriptor& field_descriptor) {
  return field_descriptor.options().GetExtension(field);
}

bool IsObjectMeta(const FieldDescriptor& descriptor) {
  return descriptor.type() == FieldDescriptor::TYPE_MESSAGE &&
         descriptor.message_type()->full_name() == "bimetal.api.ObjectMeta";
}

template <class Rules>
void SetCelRules(const Rules& cel_rules, Document* schema) {
  if (cel_rules.empty()) return;
  Document::List list;
  for (const CelRule& rule : cel_rules) {
    list.push_back(Document().Set("rule", rule.rule()).Set("message", rule.message()));
  }
  schema->Set("x-kubernetes-validations", Document(std::move(list)));
}

void SetIntOrString(std::string_view pattern, Document* schema) {
  Document::List any_of;
  any_of.push_back(Document().Set("type", "integer"));
  any_of.push_back(Document().Set("type", "string"));
  schema->Set("anyOf", Document(std::move(any_of)));
  schema->SetTrue("x-kubernetes-int-or-string");
  if (!pattern.empty()) schema->Set("pattern", pattern);
  schema->Set("maxLength", pattern.empty() ? kDefaultMaxLength : kMaxNumberLength);
}

Document StringSchema(const FieldRules& rules) {
  Document schema;
  if (rules.format() == QUANTITY) {
    SetIntOrString(kQuantityPattern, &schema);
    return schema.Set("minimum", std::int64_t{0});
  }
  if (rules.format() == INT_OR_STRING) {
    SetIntOrString("", &schema);
    return schema;
  }
  schema.Set("type", "string");
  switch (rules.format()) {
    case TIME:
      return schema.Set("format", "date-time");
    case DURATION:
      return schema.Set("pattern", kDurationPattern).Set("maxLength", kMaxNumberLength);
    case DECIMAL:
      return schema.Set("pattern", kDecimalPattern).Set("maxLength", kMaxNumberLength);
    default:
      break;
  }
  if (rules.values_size() > 0) return schema.Set("enum", ListOf(rules.values()));
  if (rules.has_min_length()) schema.Set("minLength", rules.min_length());
  schema.Set("maxLength", rules.has_max_length() ? rules.max_length() : kDefaultMaxLength);
  if (!rules.pattern().empty()) schema.Set("pattern", rules.pattern());
  return schema;
}

Document IntegerSchema(const FieldRules& rules, std::string_view format) {
  Document schema;
  schema.Set("type", "integer").Set("format", format);
  if (rules.has_minimum()) schema.Set("minimum", rules.minimum());
  if (rules.has_maximum()) schema.Set("maximum", rules.maximum());
  return schema;
}

// The schema of one value: of the field itself, of an item of its list, or of a value of its map.
Document ValueSchema(const FieldDescriptor& value, const FieldRules& rules, Errors* errors) {
  switch (value.type()) {
    case FieldDescriptor::TYPE_STRING:
      return StringSchema(rules);
    case FieldDescriptor::TYPE_BOOL:
      return Document().Set("type", "boolean");
    case FieldDescriptor::TYPE_INT32:
      return IntegerSchema(rules, "int32");
    case FieldDescriptor::TYPE_INT64:
      return IntegerSchema(rules, "int64");
    case FieldDescriptor::TYPE_MESSAGE: {
      if (rules.preserve_unknown()) {
        return Document().Set("type", "object").SetTrue("x-kubernetes-preserve-unknown-fields");
      }
      const auto& keys = rules.list_map_keys();
      return SchemaOf(*value.message_type(), {keys.begin(), keys.end()}, errors);
    }
    default:
      // Floats lose money, bytes and enums have no place in a Kubernetes API.
      errors->push_back(value.full_name() + ": type " + value.type_name() +
                        " has no place in a custom resource");
      return {};
  }
}

Document ListSchema(const FieldDescriptor& list, const FieldRules& rules, Errors* errors) {
  if (!rules.has_max_items()) errors->push_back(list.full_name() + ": a list needs max_items");
  Document schema;
  schema.Set("type", "array");
  if (rules.has_min_items()) schema.Set("minItems", rules.min_items());
  schema.Set("maxItems", rules.max_items());
  schema.Set("items", ValueSchema(list, rules, errors));
  if (rules.list_map_keys_size() > 0) {
    schema.Set("x-kubernetes-list-type", "map");
    schema.Set("x-kubernetes-list-map-keys", ListOf(rules.list_map_keys()));
  } else {
    schema.Set("x-kubernetes-list-type", rules.list_set() ? "set" : "atomic");
  }
  return schema;
}

Document MapSchema(const FieldDescriptor& map, const FieldRules& rules, Errors* errors) {
  if (!rules.has_max_properties()) {
    errors->push_back(map.full_name() + ": a map needs max_properties");
  }
  if (map.message_type()->map_key()->type() != FieldDescriptor::TYPE_STRING) {
    errors->push_back(map.full_name() + ": the keys of a map must be strings");
  }
  Document schema;
  schema.Set("type", "object").Set("maxProperties", rules.max_properties());
  schema.Set("additionalProperties", ValueSchema(*map.message_type()->map_value(), rules, errors));
  return schema;
}

Document FieldSchema(const FieldDescriptor& descriptor, Errors* errors) {
  const FieldRules& rules = RulesOf(descriptor);
  Document body = descriptor.is_map()        ? MapSchema(descriptor, rules, errors)
                  : descriptor.is_repeated() ? ListSchema(descriptor, rules, errors)
                                             : ValueSchema(descriptor, rules, errors);
  Document schema;
  if (std::string comment = CommentOf(descriptor); !comment.empty()) {
    schema.Set("description", comment);
  }
  for (const auto& [key, value] : *body.AsMap()) {
    // What is said of the field goes before what is said of its type.
    if (schema.Find(key) == nullptr) schema.Set(key, value);
  }
  if (schema.Find("description") == nullptr) {
    errors->push_back(descriptor.full_name() + ": a field needs a comment: it is its description");
  }
  if (!rules.default_json().empty()) {
    Document value;
    if (!ParseJson(rules.default_json(), &value)) {
      errors->push_back(descriptor.full_name() +
                        ": default_json is not JSON that we can write: " + rules.default_json());
    }
    schema.Set("default", std::move(value));
  }
  if (rules.rules_size() > 0) {
    // Rules of the type and of the field stand together.
    Document own;
    SetCelRules(rules.rules(), &own);
    Document::List all = *own.Find("x-kubernetes-validations")->AsList();
    if (const auto* present = schema.Find("x-kubernetes-validations")) {
      all.insert(all.end(), present->AsList()->begin(), present->AsList()->end());
    }
    schema.Set("x-kubernetes-validations", Document(std::move(all)));
  }
  return schema;
}

}  // namespace

std::string CommentOf(const FieldDescriptor& descriptor) {
  return CommentOfDeclaration(descriptor);
}

std::string CommentOf(const Descriptor& message) { return CommentOfDeclaration(message); }

bool IsRaw(const FieldDescriptor& descriptor) { return RulesOf(descriptor).format() == RAW; }

bool IsRequired(const FieldDescriptor& descriptor) { return RulesOf(descriptor).required(); }

Document SchemaOf(const Descriptor& message, const std::vector<std::string>& list_keys,
                  Errors* errors) {
  Document schema;
  if (std::string comment = CommentOf(message); !comment.empty()) {
    schema.Set("description", comment);
  }
  schema.Set("type", "object");
  Document properties;
  std::vector<std::string> required;
  bool preserves = false;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& descriptor = *message.field(i);
    if (IsRaw(descriptor)) {
      preserves = true;
      continue;
    }
    const std::string& name = descriptor.json_name();
    if (IsObjectMeta(descriptor)) {
      // The API server knows its fields and allows nothing to be said of them.
      properties.Set(name, Document().Set("type", "object"));
      continue;
    }
    const bool is_key = std::find(list_keys.begin(), list_keys.end(), name) != list_keys.end();
    if (IsRequired(descriptor) || is_key) required.push_back(name);
    properties.Set(name, FieldSchema(descriptor, errors));
  }
  for (const std::string& key : list_keys) {
    if (properties.Find(key) == nullptr) {
      errors->push_back(message.full_name() + ": no field " + key + ", which keys a list of these");
    }
  }
  schema.Set("properties", std::move(properties));
  if (!required.empty()) schema.Set("required", ListOf(required));
  if (preserves) schema.SetTrue("x-kubernetes-preserve-unknown-fields");
  SetCelRules(message.options().GetRepeatedExtension(rules), &schema);
  return schema;
}

}  // namespace bimetal::api
