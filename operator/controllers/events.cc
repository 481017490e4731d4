#include "operator/controllers/events.h"

#include "core/base/hash.h"
#include "kube/codec/codec.h"
#include "operator/controllers/conditions.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kMostMessage = 1000;  // the API server takes 1024

}  // namespace

api::Event MakeEvent(const std::string& kind, const std::string& name, const std::string& key,
                     const std::string& reason, const std::string& message, bool warning,
                     TimePoint now) {
  api::Event event;
  event.mutable_metadata()->set_namespace_("default");  // of cluster objects' events
  event.mutable_metadata()->set_name(Cut(name, 200) + ".bimetal." + ShortHash(key));
  auto* object = event.mutable_involved_object();
  object->set_api_version(kind == "Node" || kind == "Pod" ? "v1" : "bimetal.dev/v1alpha1");
  object->set_kind(kind);
  object->set_name(name);
  // As the kubelet does, so that `kubectl describe node` shows it.
  if (kind == "Node") object->set_uid(name);
  event.set_reason(reason);
  event.set_message(Cut(message, kMostMessage));
  event.set_type(warning ? "Warning" : "Normal");
  event.set_first_timestamp(FormatTime(now));
  event.set_last_timestamp(FormatTime(now));
  event.set_count(1);
  event.mutable_source()->set_component("bimetal-operator");
  event.set_reporting_component("bimetal-operator");
  return event;
}

void PutIn(const std::string& name_space, const std::string& uid, api::Event* event) {
  event->mutable_metadata()->set_namespace_(name_space);
  event->mutable_involved_object()->set_namespace_(name_space);
  event->mutable_involved_object()->set_uid(uid);
}

Write CreateEvent(const api::Event& event) {
  const auto& meta = event.metadata();
  Write write{"create", "events", meta.namespace_(), meta.name(), kube::ToJson(event), {}, {}};
  write.run = [event](kube::Client& client) -> Status {
    const auto created = client.Create(event);
    if (!created && created.error().code != ErrorCode::kAlreadyExists) {
      return tl::unexpected<Error>(created.error());
    }
    return {};
  };
  return write;
}

}  // namespace bimetal::op
