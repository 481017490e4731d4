#pragma once

#include <atomic>
#include <string>

namespace bimetal::kernels {

// Which call of a vendor's library a thread is in: what a hang is named by. One thread writes, any
// thread reads. The names are string literals.
class CallTrace {
 public:
  void Enter(const char* call) { call_.store(call, std::memory_order_relaxed); }
  void Leave() { call_.store(nullptr, std::memory_order_relaxed); }
  void Begin(const char* step) { step_.store(step, std::memory_order_relaxed); }
  // "cuMemAlloc in memory-pattern"; empty where nothing has begun.
  std::string Text() const {
    const char* call = call_.load(std::memory_order_relaxed);
    const char* step = step_.load(std::memory_order_relaxed);
    std::string text = call == nullptr ? "" : call;
    if (step != nullptr) text += (text.empty() ? "" : " in ") + std::string(step);
    return text;
  }

 private:
  std::atomic<const char*> call_{nullptr};
  std::atomic<const char*> step_{nullptr};
};

// The trace of the calling thread; null: nobody wants to know.
inline thread_local CallTrace* call_trace = nullptr;

// Says that this thread is in `call` for as long as it lives.
class ScopedCall {
 public:
  explicit ScopedCall(const char* call) {
    if (call_trace != nullptr) call_trace->Enter(call);
  }
  ~ScopedCall() {
    if (call_trace != nullptr) call_trace->Leave();
  }
  ScopedCall(const ScopedCall&) = delete;
  ScopedCall& operator=(const ScopedCall&) = delete;
};

}  // namespace bimetal::kernels
