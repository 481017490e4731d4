#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <cpprest/http_client.h>
#include <pplx/pplxtasks.h>

#include "core/base/result.h"

namespace bimetal::kube {

// One request and its answer, between cpprest's pool threads, which fill it, and the caller's
// thread, which waits for it. Everything that cpprest may do after the caller has gone (a slow name
// lookup, a late error) ends here too, so that no failed task stays unobserved: cpprest ends the
// process for one. Thread-safe.
class Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  struct Head {
    int status = 0;
    std::map<std::string, std::string> headers;
  };

  // Sends `request`. This is the one place that calls http_client::request. At most `buffer_bytes`
  // of the body (and one piece more) wait for NextPiece.
  static std::shared_ptr<Exchange> Start(web::http::client::http_client& client,
                                         web::http::http_request request, std::size_t buffer_bytes);

  Result<Head> WaitHead(Deadline deadline, const std::stop_token& stop);
  // The next piece of the body, empty at its end.
  Result<std::string> NextPiece(Deadline deadline, const std::stop_token& stop);
  // Ends the request; what still arrives is dropped.
  void Cancel();

 private:
  explicit Exchange(std::size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  pplx::task<void> Accept(const std::uint8_t* data, std::size_t size);
  void SetHead(const web::http::http_response& response);
  void SetEnd();
  void SetFailed();  // from the exception that is being handled
  template <class Ready>
  Status Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, const std::stop_token& stop,
              Ready ready);

  const std::size_t buffer_bytes_;
  pplx::cancellation_token_source cancel_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Head> head_;
  std::deque<std::string> pieces_;
  std::size_t buffered_ = 0;
  bool ended_ = false;
  bool cancelled_ = false;
  std::optional<std::string> failed_;
  // Set while cpprest waits for room.
  std::optional<pplx::task_completion_event<void>> room_;
};

}  // namespace bimetal::kube
