#include "kube/transport/exchange.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <utility>

#include "kube/transport/body_sink.h"

namespace bimetal::kube {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::shared_ptr<Exchange> Exchange::Start(web::http::client::http_client& client,
                                          web::http::http_request request,
                                          std::size_t buffer_bytes) {
  std::shared_ptr<Exchange> exchange(new Exchange(buffer_bytes));
  request.set_response_stream(MakeBodySink([exchange](const std::uint8_t* data, std::size_t size) {
    return exchange->Accept(data, size);
  }));
  pplx::task<web::http::http_response> answer;
  try {
    answer = client.request(std::move(request), exchange->cancel_.get_token());
  } catch (...) {
    exchange->SetFailed();
    return exchange;
  }
  answer
      .then([exchange](pplx::task<web::http::http_response> task) {
        try {
          const web::http::http_response response = task.get();
          exchange->SetHead(response);
          return response.content_ready().then(
              [exchange](pplx::task<web::http::http_response> body) {
                try {
                  body.get();
                  exchange->SetEnd();
                } catch (...) {
                  exchange->SetFailed();
                }
              });
        } catch (...) {
          exchange->SetFailed();
        }
        return pplx::task_from_result();
      })
      .then([exchange](pplx::task<void> task) {
        try {
          task.get();
        } catch (...) {
          exchange->SetFailed();
        }
      });
  return exchange;
}

pplx::task<void> Exchange::Accept(const std::uint8_t* data, std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (cancelled_) return pplx::task_from_result();
  pieces_.emplace_back(reinterpret_cast<const char*>(data), size);
  buffered_ += size;
  changed_.notify_all();
  if (buffered_ <= buffer_bytes_) return pplx::task_from_result();
  room_.emplace();
  return pplx::create_task(*room_);
}

void Exchange::SetHead(const web::http::http_response& response) {
  Head head;
  head.status = response.status_code();
  for (const auto& [name, value] : response.headers()) head.headers[Lower(name)] = value;
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  changed_.notify_all();
}

void Exchange::SetEnd() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void Exchange::SetFailed() {
  // The codes of cpprest do not tell a cut connection from other troubles; only the text is kept.
  std::string text = "unknown failure";
  try {
    throw;
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  const std::lock_guard lock(mutex_);
  if (!failed_ && !ended_) failed_ = std::move(text);
  changed_.notify_all();
}

template <class Ready>
Status Exchange::Wait(std::unique_lock<std::mutex>& lock, Deadline deadline,
                      const std::stop_token& stop, Ready ready) {
  const bool done = changed_.wait_until(lock, stop, deadline,
                                        [&] { return ready() || ended_ || failed_.has_value(); });
  if (done) return {};
  lock.unlock();
  Cancel();
  lock.lock();
  if (stop.stop_requested()) return Fail(ErrorCode::kUnavailable, "stopped");
  return Fail(ErrorCode::kDeadline, "no answer in time");
}

Result<Exchange::Head> Exchange::WaitHead(Deadline deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  BIMETAL_TRY(Wait(lock, deadline, stop, [this] { return head_.has_value(); }));
  if (head_) return *head_;
  return Fail(ErrorCode::kUnavailable, failed_.value_or("the answer has no head"));
}

Result<std::string> Exchange::NextPiece(Deadline deadline, const std::stop_token& stop) {
  std::optional<pplx::task_completion_event<void>> room;
  std::string piece;
  {
    std::unique_lock lock(mutex_);
    BIMETAL_TRY(Wait(lock, deadline, stop, [this] { return !pieces_.empty(); }));
    if (pieces_.empty()) {
      if (failed_) return Fail(ErrorCode::kUnavailable, *failed_);
      return std::string();
    }
    piece = std::move(pieces_.front());
    pieces_.pop_front();
    buffered_ -= piece.size();
    if (room_ && buffered_ <= buffer_bytes_ / 2) room = std::exchange(room_, std::nullopt);
  }
  if (room) room->set();
  return piece;
}

void Exchange::Cancel() {
  std::optional<pplx::task_completion_event<void>> room;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(cancelled_, true)) return;
    // Over: its connection may already serve another request and must not be closed.
    if (ended_ || failed_) return;
    pieces_.clear();
    buffered_ = 0;
    room = std::exchange(room_, std::nullopt);
  }
  // First the cancellation, so that cpprest, waiting for room, does not read on.
  cancel_.cancel();
  if (room) room->set();
}

}  // namespace bimetal::kube
