#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <google/protobuf/message.h>

#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/client/client.h"
#include "kube/retry.h"

namespace bimetal::kube {

enum class EventKind {
  kUpsert,     // the object exists and looks like this
  kDelete,     // the object is gone
  kSynced,     // a list is complete: every object that exists has been delivered
  kRestarted,  // a new list begins (not the first); kSynced follows when it is complete
  kError,      // a list, a watch or one object failed; the informer goes on by itself
};

struct RawEvent {
  EventKind kind = EventKind::kUpsert;
  std::shared_ptr<const google::protobuf::Message> object;
  std::string key;
  Error error;
};

struct InformerOptions {
  ListOptions list;
  BackoffOptions backoff;
  // Of the jitter; give each informer its own.
  std::uint64_t seed = 0;
  // Must outlive the informer; the system's clock where null.
  const Clock* clock = nullptr;
  // Waits for a time or for the stop; replaced in tests.
  std::function<void(Millis, const StopToken&)> wait;
};

// Informer without its type; see informer.h.
class InformerCore {
 public:
  InformerCore(std::shared_ptr<Client> client, const ResourceInfo& info,
               const google::protobuf::Message& prototype, InformerOptions options,
               std::function<void(RawEvent)> on_event);
  ~InformerCore();
  InformerCore(const InformerCore&) = delete;
  InformerCore& operator=(const InformerCore&) = delete;

  void Start();
  void Stop();
  bool synced() const;
  Millis last_sync_age() const;
  std::int64_t requests() const;
  int failures() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::jthread thread_;
};

}  // namespace bimetal::kube
