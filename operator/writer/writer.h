#pragma once

#include <condition_variable>
#include <cstdint>
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
#include "operator/writer/write_queue.h"

namespace bimetal::op {

// A small pool of threads that sends writes and posts their results to the loop, in the order of
// WriteQueue. Writes of one object are not ordered by it: whoever needs an order waits for the
// result before the next one.
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
  std::size_t Depth() const override;  // also from other threads

 private:
  void Work();

  std::shared_ptr<kube::Client> client_;
  Loop& loop_;
  Observer observe_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  WriteQueue queue_;      // guarded by mutex_
  bool stopped_ = false;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace bimetal::op
