#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/client/client.h"
#include "kube/informer/core.h"

namespace bimetal::kube {

template <class T>
struct Event {
  EventKind kind = EventKind::kUpsert;
  // kUpsert: the object now. kDelete: its last known state. Else empty.
  T object;
  // "ns/name" of the object; kError: of the object that could not be decoded, or "".
  std::string key;
  // kError only.
  Error error;
};

// Keeps a caller up to date with all objects of a kind: a paged list, then watches with bookmarks
// that resume by resource version; a new list after 410; capped, jittered backoff between failures.
//
// Promises: events of one object arrive in order; an object that vanished while we were not looking
// arrives as kDelete after the next list; a name created anew arrives as kDelete of the old uid,
// then kUpsert of the new one; late events of an old uid never touch the new object.
//
// Start, Stop and the destructor: one thread. Getters: thread-safe. The callback runs on the
// informer's own thread and may block (then the server is made to wait, a watch that waits over two
// minutes is made again); it must not call Stop().
template <class T>
class Informer {
 public:
  Informer(std::shared_ptr<Client> client, InformerOptions options,
           std::function<void(Event<T>)> on_event)
      : core_(std::move(client), InfoOf<T>(), T::default_instance(), std::move(options),
              [on_event = std::move(on_event)](RawEvent raw) {
                Event<T> event{raw.kind, {}, std::move(raw.key), std::move(raw.error)};
                if (raw.object) event.object = static_cast<const T&>(*raw.object);
                on_event(std::move(event));
              }) {}

  // Starts the thread. Once.
  void Start() { core_.Start(); }
  // Ends the thread, within a second unless the callback blocks. May be called again.
  void Stop() { core_.Stop(); }

  // True from the first kSynced on.
  bool synced() const { return core_.synced(); }
  // Time since we last knew to be up to date (list done, event or bookmark received).
  Millis last_sync_age() const { return core_.last_sync_age(); }
  // Lists (by page) and watches sent.
  std::int64_t requests() const { return core_.requests(); }
  // Failures since the last success; 0 in good order.
  int failures() const { return core_.failures(); }

 private:
  InformerCore core_;
};

}  // namespace bimetal::kube
