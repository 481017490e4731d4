#include "kube/client/resource.h"

#include <cstdio>

#include "api/meta.pb.h"
#include "api/options.pb.h"
#include "core/base/result.h"

namespace bimetal::kube {

std::string ResourceInfo::ApiVersion() const {
  return group.empty() ? version : group + "/" + version;
}

std::string ResourceInfo::Path(std::string_view ns, std::string_view name,
                               std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !ns.empty()) path += "/namespaces/" + UrlEncode(ns);
  path += "/" + plural;
  if (!name.empty()) path += "/" + UrlEncode(name);
  if (!subresource.empty()) path += "/" + UrlEncode(subresource);
  return path;
}

ResourceInfo InfoFromDescriptor(const google::protobuf::Descriptor& descriptor) {
  BIMETAL_CHECK(descriptor.options().HasExtension(api::kind));
  const api::Kind& kind = descriptor.options().GetExtension(api::kind);
  return {kind.group(), kind.version(), kind.kind(), kind.plural(), kind.namespaced()};
}

ObjectKey KeyOf(const google::protobuf::Message& object) {
  const auto* field = object.GetDescriptor()->FindFieldByName("metadata");
  if (field == nullptr || field->message_type() != api::ObjectMeta::descriptor()) return {};
  const auto& meta =
      static_cast<const api::ObjectMeta&>(object.GetReflection()->GetMessage(object, field));
  return {meta.namespace_(), meta.name(), meta.uid(), meta.resource_version()};
}

std::string UrlEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned>(c) & 0xFFu);
    out += escaped;
  }
  return out;
}

}  // namespace bimetal::kube
