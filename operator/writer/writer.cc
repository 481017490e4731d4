#include "operator/writer/writer.h"

namespace bimetal::op {

Writer::Writer(std::shared_ptr<kube::Client> client, Loop& loop, int threads, Observer observe)
    : client_(std::move(client)), loop_(loop), observe_(std::move(observe)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    queue_.Clear();
  }
  wake_.notify_all();
}

void Writer::Submit(Write write) {
  const std::lock_guard lock(mutex_);
  queue_.Push(std::move(write));
  wake_.notify_one();
}

std::size_t Writer::Depth() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void Writer::Work() {
  while (true) {
    Write write;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      write = queue_.Pop();
    }
    Status status = write.run(*client_);
    observe_(write.verb, write.resource,
             status ? std::nullopt : std::optional(status.error().code));
    if (write.done) {
      loop_.Post([&loop = loop_, done = std::move(write.done), status = std::move(status)] {
        done(status);
        loop.RequestStep();
      });
    }
  }
}

}  // namespace bimetal::op
