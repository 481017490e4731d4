#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "kube/client/client.h"

namespace bimetal::op {

// One write to the API server, as the controllers ask for it.
struct Write {
  std::string verb;      // create, patch, delete: for metrics and tests
  std::string resource;  // plural, with the subresource: "gpujobs/status"
  std::string name_space, name;
  std::string body;  // what is sent, where it is JSON
  std::function<Status(kube::Client&)> run;
  // Called on the loop thread with how it ended. May be empty.
  std::function<void(const Status&)> done;
};

// Where controllers put their writes. Loop thread only.
class WriteSink {
 public:
  virtual ~WriteSink() = default;
  virtual void Submit(Write write) = 0;
  // Writes that have not begun. Who has something to say that can wait says it when few do.
  virtual std::size_t Depth() const = 0;
};

}  // namespace bimetal::op
