#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "kube/client/client.h"
#include "operator/loop/loop.h"

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
};

// A small pool of threads that sends writes and posts their results to the loop. Writes of one
// object are not ordered by it: whoever needs an order waits for the result before the next one.
class Writer final : public WriteSink {
 public:
  // `observe` is told of every write that ended (verb, resource, error); called from many threads.
  using Observer =
      std::function<void(const std::string&, const std::string&, std::optional<ErrorCode>)>;
  Writer(std::shared_ptr<kube::Client> client, Loop& loop, int threads, Observer observe);
  ~Writer() override;  // abandons what has not begun
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Submit(Write write) override;

  // Writes that wait. Thread-safe.
  std::size_t Depth() const;

 private:
  void Work();

  std::shared_ptr<kube::Client> client_;
  Loop& loop_;
  Observer observe_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Write> queue_;  // guarded by mutex_
  bool stopped_ = false;     // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace bimetal::op
