#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/client/resource.h"
#include "kube/codec/codec.h"
#include "kube/transport/transport.h"

namespace bimetal::kube {

enum class PatchType { kMerge, kJson, kStrategic, kApply };

struct DeleteOptions {
  // Not empty: only the object with this uid is deleted, else kConflict.
  std::string uid{};
  std::optional<std::int64_t> grace_seconds{};
  // "Background", "Foreground", "Orphan"; "" is the server's default.
  std::string propagation{};
};

struct ListOptions {
  // Empty: all namespaces.
  std::string ns{};
  std::string label_selector{};
  std::string field_selector{};
  // Items a page.
  int page_size = 500;
};

template <class T>
struct List {
  std::vector<T> items;
  std::string resource_version{};
};

struct WatchOptions {
  std::string ns{};
  std::string label_selector{};
  std::string field_selector{};
  std::string resource_version{};
  // The server ends the watch in order after this time.
  Millis timeout = Seconds(400);
};

template <class T>
struct WatchEvent {
  // Never kError: that ends the watch with its Error.
  WatchType type = WatchType::kAdded;
  T object;
  // kBookmark only.
  std::string resource_version;
};

// Typed calls to the API server. Failures of the server are values: code by HTTP status and reason,
// message "create pods train/p0: ... (409 AlreadyExists)", retry_after_ms as the server asks.
//
// A request may reach the server twice (a connection closed under a POST makes the transport send
// it again), so name what you create deterministically and take kAlreadyExists for success once the
// existing object proves to be yours.
//
// Thread-safe. Every call blocks, at most for `deadline` per request; not for the loop thread.
class Client {
 public:
  explicit Client(std::shared_ptr<Transport> transport, Millis deadline = Seconds(30));

  // The same server with another deadline per request.
  Client WithDeadline(Millis deadline) const;

  // Cluster-scoped kinds: `ns` is "".
  template <class T>
  Result<T> Get(std::string_view ns, std::string_view name) {
    return Decode<T>(
        [&](google::protobuf::Message* out) { return GetInto(InfoOf<T>(), ns, name, out); });
  }

  template <class T>
  Result<T> Create(const T& object) {
    return Decode<T>(
        [&](google::protobuf::Message* out) { return CreateInto(InfoOf<T>(), object, out); });
  }

  // Creates from JSON text and returns the server's answer. `subresource` needs `name`.
  Result<std::string> CreateRaw(const ResourceInfo& info, std::string_view ns,
                                std::string_view json, std::string_view name = "",
                                std::string_view subresource = "");

  // Replaces the object, guarded by its resource version. Fields that our message does not know are
  // LOST: only for kinds that are modelled whole (ours, Lease, Secret, ConfigMap); else Patch.
  template <class T>
  Result<T> Update(const T& object) {
    return Decode<T>(
        [&](google::protobuf::Message* out) { return UpdateInto(InfoOf<T>(), object, out); });
  }

  // kApply: field manager "bimetal", forced. kStrategic: built-in kinds only.
  template <class T>
  Result<T> Patch(std::string_view ns, std::string_view name, std::string_view json, PatchType type,
                  std::string_view subresource = "") {
    return Decode<T>([&](google::protobuf::Message* out) {
      return PatchInto(InfoOf<T>(), ns, name, json, type, subresource, out);
    });
  }

  // Writes the whole status of `object` through the subresource, only if the object of that name
  // still has this uid (which must be set). Errors: kNotFound, kConflict (another uid).
  template <class T>
  Status ReplaceStatus(const T& object) {
    return ReplaceStatusOf(InfoOf<T>(), object);
  }

  template <class T>
  Status Delete(std::string_view ns, std::string_view name, const DeleteOptions& options = {}) {
    return DeleteOf(InfoOf<T>(), ns, name, options);
  }

  // All pages. Starts again where the snapshot expires between pages (410), at most three times.
  // One item that cannot be decoded fails the call.
  template <class T>
  Result<List<T>> ListAll(const ListOptions& options = {}) {
    struct Sink final : ItemSink {
      List<T> list;
      google::protobuf::Message* New() override { return &list.items.emplace_back(); }
      Status Done(google::protobuf::Message*) override { return {}; }
      Status Failed(google::protobuf::Message*, Error error) override {
        return tl::unexpected<Error>(std::move(error));
      }
    } sink;
    auto version = ListInto(InfoOf<T>(), options, sink, [&sink] { sink.list.items.clear(); }, {});
    if (!version) return tl::unexpected<Error>(std::move(version).error());
    sink.list.resource_version = std::move(version).value();
    return std::move(sink.list);
  }

  // One watch, from options.resource_version; {} when the server ended it in order, on_event
  // returned false, or `stop`. Errors: kGone (list again), any other (resume). Calls on_event on
  // this thread. For a watch that heals itself use Informer.
  template <class T>
  Status Watch(const WatchOptions& options, const std::function<bool(WatchEvent<T>)>& on_event,
               StopToken stop = {}) {
    T object;
    return WatchInto(
        InfoOf<T>(), options, &object,
        [&](const Result<WatchLine>& line) -> Result<bool> {
          if (!line) return tl::unexpected<Error>(line.error());
          WatchEvent<T> event{line->type, {}, line->resource_version};
          if (line->type != WatchType::kBookmark) event.object = std::move(object);
          return on_event(std::move(event));
        },
        std::move(stop));
  }

  // A pod's log, line by line, bytes that are not UTF-8 replaced; follows while the pod runs where
  // `follow`. `container` may be "" for a pod with one.
  Status PodLog(std::string_view ns, std::string_view name, std::string_view container, bool follow,
                const std::function<bool(std::string_view line)>& on_line, StopToken stop = {});

  // Any request; the body of a 2xx answer. `what` names it in errors: "get version".
  Result<std::string> Raw(const Request& request, std::string_view what, StopToken stop = {});

  // --- The untyped core under the calls above; Informer uses it too. ---

  Status GetInto(const ResourceInfo& info, std::string_view ns, std::string_view name,
                 google::protobuf::Message* out);
  Status CreateInto(const ResourceInfo& info, const google::protobuf::Message& object,
                    google::protobuf::Message* out);
  Status UpdateInto(const ResourceInfo& info, const google::protobuf::Message& object,
                    google::protobuf::Message* out);
  Status PatchInto(const ResourceInfo& info, std::string_view ns, std::string_view name,
                   std::string_view json, PatchType type, std::string_view subresource,
                   google::protobuf::Message* out);
  Status ReplaceStatusOf(const ResourceInfo& info, const google::protobuf::Message& object);
  Status DeleteOf(const ResourceInfo& info, std::string_view ns, std::string_view name,
                  const DeleteOptions& options);
  // Returns the list's resource version. `restart` is called before a list begins again; `sent`,
  // where given, grows by the requests sent.
  Result<std::string> ListInto(const ResourceInfo& info, const ListOptions& options, ItemSink& sink,
                               const std::function<void()>& restart, StopToken stop,
                               std::int64_t* sent = nullptr);
  // For each line `on_line` gets it decoded (its object in `object`) or the decoding error; it
  // returns whether to go on, or an error that ends the watch.
  Status WatchInto(const ResourceInfo& info, const WatchOptions& options,
                   google::protobuf::Message* object,
                   const std::function<Result<bool>(const Result<WatchLine>&)>& on_line,
                   StopToken stop);

  // Requests sent so far, those of all threads together.
  std::int64_t requests() const;

 private:
  template <class T, class F>
  static Result<T> Decode(F&& call) {
    T out;
    Status status = std::forward<F>(call)(&out);
    if (!status) return tl::unexpected<Error>(std::move(status).error());
    return out;
  }

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace bimetal::kube
