#include "api/generator/crd.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "api/generator/schema.h"
#include "api/options.pb.h"

namespace bimetal::api {
namespace {

using google::protobuf::Descriptor;

constexpr const char* kGroup = "bimetal.dev";

std::string ToLower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Document Names(const Kind& kind_options) {
  Document names;
  names.Set("kind", kind_options.kind());
  names.Set("listKind", kind_options.kind() + "List");
  names.Set("plural", kind_options.plural());
  names.Set("singular", ToLower(kind_options.kind()));
  if (kind_options.short_names_size() > 0) {
    names.Set("shortNames", ListOf(kind_options.short_names()));
  }
  if (kind_options.categories_size() > 0) {
    names.Set("categories", ListOf(kind_options.categories()));
  }
  return names;
}

Document Columns(const Kind& kind_options) {
  Document::List columns;
  for (const Column& column : kind_options.columns()) {
    Document entry;
    entry.Set("name", column.name()).Set("type", column.type());
    if (!column.description().empty()) entry.Set("description", column.description());
    entry.Set("jsonPath", column.json_path());
    if (column.priority() != 0) entry.Set("priority", column.priority());
    columns.push_back(std::move(entry));
  }
  return Document(std::move(columns));
}

Document Subresources(const Kind& kind_options) {
  Document subresources;
  subresources.Set("status", Document());
  if (kind_options.has_scale()) {
    const Scale& scale = kind_options.scale();
    Document entry;
    entry.Set("specReplicasPath", scale.spec_replicas_path());
    entry.Set("statusReplicasPath", scale.status_replicas_path());
    if (!scale.label_selector_path().empty()) {
      entry.Set("labelSelectorPath", scale.label_selector_path());
    }
    subresources.Set("scale", std::move(entry));
  }
  return subresources;
}

// The message's schema with the two fields that say what an object is.
Document RootSchema(const Descriptor& message, std::vector<std::string>* errors) {
  Document schema = SchemaOf(message, {}, errors);
  Document properties;
  properties.Set("apiVersion",
                 Document()
                     .Set("description", "The version of the API that this object is written in.")
                     .Set("type", "string"));
  properties.Set("kind",
                 Document().Set("description", "The kind of this object.").Set("type", "string"));
  for (const auto& [name, property] : *schema.Find("properties")->AsMap()) {
    properties.Set(name, property);
  }
  schema.Set("properties", std::move(properties));
  return schema;
}

void CheckKind(const Descriptor& message, const Kind& kind_options,
               std::vector<std::string>* errors) {
  if (kind_options.version().empty() || kind_options.kind().empty() ||
      kind_options.plural().empty()) {
    errors->push_back(message.full_name() + ": a kind needs version, kind and plural");
  }
  if (message.FindFieldByName("metadata") == nullptr) {
    errors->push_back(message.full_name() + ": a kind needs the field metadata");
  }
  if (CommentOf(message).empty()) {
    errors->push_back(message.full_name() + ": a kind needs a comment: it is its description");
  }
}

}  // namespace

std::vector<const Descriptor*> KindsOf(const google::protobuf::FileDescriptor& file) {
  std::vector<const Descriptor*> kinds;
  for (int i = 0; i < file.message_type_count(); ++i) {
    const Descriptor* message = file.message_type(i);
    if (message->options().GetExtension(kind).group() == kGroup) kinds.push_back(message);
  }
  return kinds;
}

Document CrdOf(const Descriptor& message, std::vector<std::string>* errors) {
  const Kind& kind_options = message.options().GetExtension(kind);
  CheckKind(message, kind_options, errors);
  Document version;
  version.Set("name", kind_options.version());
  version.SetTrue("served").SetTrue("storage");
  version.Set("additionalPrinterColumns", Columns(kind_options));
  version.Set("subresources", Subresources(kind_options));
  version.Set("schema", Document().Set("openAPIV3Schema", RootSchema(message, errors)));

  Document spec;
  spec.Set("group", kind_options.group());
  spec.Set("scope", kind_options.namespaced() ? "Namespaced" : "Cluster");
  spec.Set("names", Names(kind_options));
  spec.Set("versions", Document(Document::List{std::move(version)}));

  Document crd;
  crd.Set("apiVersion", "apiextensions.k8s.io/v1");
  crd.Set("kind", "CustomResourceDefinition");
  crd.Set("metadata", Document().Set("name", kind_options.plural() + "." + kind_options.group()));
  crd.Set("spec", std::move(spec));
  return crd;
}

}  // namespace bimetal::api
