#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/metrics/metrics.h"
#include "operator/state/store.h"

namespace bimetal::op {

// Device time of pods that others made and that a queue admitted, summed by their owner. It begins
// when a pod is bound to its node and ends with its last container. Loop thread only.
class PodMeter {
 public:
  // The model of a vendor's devices on a node; may be empty.
  using ModelOf = std::function<std::string(const std::string& node, core::Vendor vendor)>;
  explicit PodMeter(ModelOf model_of) : model_of_(std::move(model_of)) {}

  // A pod as it is now. What was `witnessed` counts to the millisecond of receipt; else the API's
  // own seconds do. Pods that no queue admitted, and pods without devices, count nothing.
  void See(const PodRecord& pod, TimePoint now, bool witnessed);
  // The pod object is gone: what had not ended ends now.
  void Gone(const PodRecord& pod, TimePoint now);

  // One row for each owner (a pod without one is its own), until kJobRetention after its last pod
  // has ended; then the owner is forgotten by Prune.
  std::vector<JobRow> Rows(TimePoint now) const;
  void Prune(TimePoint now);

 private:
  using Kind = std::pair<core::Vendor, std::string>;  // and model, as it was at the begin
  struct Span {
    TimePoint begin;
    std::map<Kind, std::int64_t> devices;
  };
  struct Owner {
    std::string name_space, name, queue;
    std::map<std::string, Span> open;     // by uid of the pod
    std::map<Kind, std::int64_t> closed;  // device milliseconds
    std::optional<TimePoint> last_end;
  };
  static void Close(Owner& owner, const std::string& pod_uid, TimePoint end);

  ModelOf model_of_;
  std::map<std::string, Owner> owners_;  // by uid
};

}  // namespace bimetal::op
