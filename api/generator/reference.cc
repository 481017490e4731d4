#include "api/generator/reference.h"

#include <algorithm>
#include <string_view>

#include "api/generator/yaml.h"

namespace bimetal::api {
namespace {

std::string_view Text(const Document& map, std::string_view key) {
  const Document* value = map.Find(key);
  return value == nullptr || value->AsString() == nullptr ? std::string_view()
                                                          : std::string_view(*value->AsString());
}

std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') {
      out += "\\|";
    } else if (c == '\n') {
      out += "<br>";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string TypeOf(const Document& schema) {
  if (schema.Find("x-kubernetes-int-or-string") != nullptr) return "quantity";
  const std::string_view type = Text(schema, "type");
  if (type == "array") return "list of " + TypeOf(*schema.Find("items"));
  if (const Document* values = schema.Find("additionalProperties")) {
    return "map of " + TypeOf(*values);
  }
  if (Text(schema, "format") == "date-time") return "time";
  return std::string(type);
}

void AppendBound(const Document& schema, std::string_view key, std::string_view words,
                 std::vector<std::string>* bounds) {
  if (const Document* value = schema.Find(key)) {
    bounds->push_back(std::string(words) + ' ' + ToJson(*value));
  }
}

std::string BoundsOf(const Document& schema) {
  std::vector<std::string> bounds;
  if (const Document* values = schema.Find("enum")) {
    std::string names;
    for (const auto& value : *values->AsList()) {
      names += (names.empty() ? "" : ", ") + ('`' + *value.AsString() + '`');
    }
    bounds.push_back("one of " + names);
  }
  AppendBound(schema, "minimum", "at least", &bounds);
  AppendBound(schema, "maximum", "at most", &bounds);
  AppendBound(schema, "minItems", "items at least", &bounds);
  AppendBound(schema, "maxItems", "items at most", &bounds);
  AppendBound(schema, "maxProperties", "entries at most", &bounds);
  AppendBound(schema, "maxLength", "characters at most", &bounds);
  std::string out;
  for (const auto& bound : bounds) out += (out.empty() ? "" : "; ") + bound;
  return out;
}

bool IsRequired(const Document& parent, std::string_view name) {
  const Document* required = parent.Find("required");
  if (required == nullptr) return false;
  const auto& names = *required->AsList();
  return std::any_of(names.begin(), names.end(),
                     [&](const Document& entry) { return *entry.AsString() == name; });
}

void AppendRules(const Document& schema, const std::string& path, std::string* out) {
  const Document* rules = schema.Find("x-kubernetes-validations");
  if (rules == nullptr) return;
  for (const auto& rule : *rules->AsList()) {
    *out += "- `" + (path.empty() ? std::string("the object") : path) +
            "`: " + std::string(Text(rule, "message")) + "\n";
  }
}

// One row for each field below `schema`, depth first; the messages of CEL rules go to `rules`.
void AppendRows(const Document& schema, const std::string& path, std::string* rows,
                std::string* rules) {
  AppendRules(schema, path, rules);
  const Document* properties = schema.Find("properties");
  if (properties == nullptr) return;
  for (const auto& [name, child] : *properties->AsMap()) {
    if (path.empty() && (name == "apiVersion" || name == "kind" || name == "metadata")) continue;
    const std::string child_path = path.empty() ? name : path + "." + name;
    const Document* preset = child.Find("default");
    *rows += "| `" + child_path + "` | " + TypeOf(child) + " | " +
             (IsRequired(schema, name) ? "required" : "") +
             (preset != nullptr ? "`" + Cell(ToJson(*preset)) + "`" : "") + " | " +
             Cell(Text(child, "description")) + " | " + BoundsOf(child) + " |\n";
    const Document* items = child.Find("items");
    if (items != nullptr) AppendRules(child, child_path, rules);
    AppendRows(items != nullptr ? *items : child, items != nullptr ? child_path + "[]" : child_path,
               rows, rules);
  }
}

std::string KindSection(const Document& crd) {
  const Document& spec = *crd.Find("spec");
  const Document& names = *spec.Find("names");
  const Document& version = spec.Find("versions")->AsList()->front();
  const Document& schema = *version.Find("schema")->Find("openAPIV3Schema");
  std::string shorts;
  if (const Document* short_names = names.Find("shortNames")) {
    for (const auto& name : *short_names->AsList()) {
      shorts += (shorts.empty() ? "" : ", ") + ('`' + *name.AsString() + '`');
    }
  }
  std::string out = "\n## " + std::string(Text(names, "kind")) + "\n\n";
  out += std::string(Text(schema, "description")) + "\n\n";
  out += "`" + std::string(Text(spec, "group")) + "/" + std::string(Text(version, "name")) + "`, " +
         (Text(spec, "scope") == "Cluster" ? "cluster-scoped" : "namespaced") + ", short name " +
         shorts + ".\n\n";
  std::string rows;
  std::string rules;
  AppendRows(schema, "", &rows, &rules);
  out += "| field | type | required or default | what it says | bounds |\n";
  out += "| --- | --- | --- | --- | --- |\n" + rows;
  if (!rules.empty()) out += "\nRules that the API server enforces:\n\n" + rules;
  return out;
}

}  // namespace

std::string ReferencePage(const std::vector<Document>& crds) {
  std::string out =
      "<!-- Written by api/generator from api/*.proto. Do not edit: build the target "
      "update-manifests. -->\n"
      "# The API, field by field\n\n"
      "The same text is in the cluster: `kubectl explain gpujob.spec.variants`. A role's pod "
      "template "
      "takes every field\nthat Kubernetes knows there: those that this page does not name reach "
      "the "
      "pods unchanged.\n";
  for (const auto& crd : crds) out += KindSection(crd);
  return out;
}

}  // namespace bimetal::api
