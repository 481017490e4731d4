#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace bimetal::workloads {

struct ServeOptions {
  std::uint16_t port = 8080;           // 0: one is chosen, and said
  std::chrono::milliseconds delay{0};  // of each prediction, as a larger model would take
  std::chrono::milliseconds warm_up{0};
  // After a stop signal: new requests are still answered for this long.
  std::chrono::milliseconds linger{1000};
  std::string replica, vendor, variant;  // who answers; for the answer alone
};

// An inference server over HTTP until a signal asks to stop:
//   GET /healthz            200 while requests are taken, 503 while warming up and when stopping
//   GET /predict?input=N    {"input":N,"output":"...","replica":...}, computed on a device
// What was accepted is answered before it ends. Returns the process's exit status: 0 after an
// orderly stop, 1 where it cannot listen or compute. `say` gets the progress lines.
int RunServe(const ServeOptions& options, const std::function<void(const std::string&)>& say);

}  // namespace bimetal::workloads
