#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace bimetal::kube {

// A kind of the API and where it is served. Immutable.
struct ResourceInfo {
  std::string group;  // "" is the core group
  std::string version;
  std::string kind;
  std::string plural;
  bool namespaced = false;

  // "v1", "bimetal.dev/v1alpha1".
  std::string ApiVersion() const;
  // "/api/v1/namespaces/ns/pods/name/status"; empty parts are left out. Parts are percent-encoded.
  std::string Path(std::string_view ns, std::string_view name = "",
                   std::string_view subresource = "") const;
};

// From the Kind option of the message type; ends the process for a type without one.
ResourceInfo InfoFromDescriptor(const google::protobuf::Descriptor& descriptor);

template <class T>
const ResourceInfo& InfoOf() {
  static const ResourceInfo info = InfoFromDescriptor(*T::descriptor());
  return info;
}

// The strings of an object's metadata that every caller needs; empty where absent.
struct ObjectKey {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;

  // "ns/name", or "name" for a cluster-scoped object.
  std::string Text() const { return ns.empty() ? name : ns + "/" + name; }
};

ObjectKey KeyOf(const google::protobuf::Message& object);

// `text` percent-encoded for a path segment or a query value.
std::string UrlEncode(std::string_view text);

}  // namespace bimetal::kube
