#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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
  Writer(std::shared_ptr<kube::Client> client, Loop& loop, int threads);
  ~Writer() override;  // abandons what has not begun
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Submit(Write write) override;

  // Writes that ended so far by (verb, resource). Thread-safe.
  std::map<std::pair<std::string, std::string>, std::int64_t> Counts() const;
  std::size_t Depth() const;

 private:
  void Work();

  std::shared_ptr<kube::Client> client_;
  Loop& loop_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Write> queue_;                                             // guarded by mutex_
  std::map<std::pair<std::string, std::string>, std::int64_t> counts_;  // guarded by mutex_
  bool stopped_ = false;                                                // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace bimetal::op
