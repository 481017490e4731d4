#include "workloads/serve/serve.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <optional>
#include <thread>

#include "workloads/program/stop.h"
#include "workloads/serve/predictor.h"

namespace bimetal::workloads {
namespace {

constexpr std::chrono::milliseconds kPredictTimeout{10'000};
constexpr std::size_t kThreads = 16;
constexpr std::size_t kMaxBody = 4096;  // nobody sends us one
constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";

// Names of the house only: letters, digits, '-' and '.'; anything else would need escaping.
std::string Plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    out += plain ? c : '?';
  }
  return out;
}

std::optional<std::uint64_t> NumberOf(const std::string& text) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

class Service {
 public:
  Service(const ServeOptions& options, Predictor& predictor)
      : options_(options), predictor_(predictor) {
    server_.set_payload_max_length(kMaxBody);
    server_.set_tcp_nodelay(true);
    // One request a connection: a connection that is kept open would be cut with a request on its
    // way when the replica ends.
    server_.set_keep_alive_max_count(1);
    // The library's own choice is SO_REUSEPORT, under which two servers share a port unnoticed.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
      response.status = taking_ ? 200 : 503;
      response.set_content(taking_ ? "ok\n" : "not taking requests\n", kText);
    });
    server_.Get("/predict", [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response);
    });
  }

  // The port, or 0 where it is not to be had.
  int Bind() {
    if (options_.port == 0) return std::max(0, server_.bind_to_any_port("0.0.0.0"));
    return server_.bind_to_port("0.0.0.0", options_.port) ? options_.port : 0;
  }

  void Run(const std::function<void(const std::string&)>& say) {
    std::thread acceptor([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
    if (SleepUnlessStopped(options_.warm_up)) {
      taking_ = true;
      say("ready");
      while (!ended_ && SleepUnlessStopped(std::chrono::hours(24))) {
      }
      taking_ = false;
      say("stopping after " + std::to_string(answered_) + " answers");
      std::this_thread::sleep_for(options_.linger);
    }
    // Before it runs the library would forget a stop.
    while (!server_.is_running() && !ended_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    server_.stop();  // what was accepted is still answered
    acceptor.join();
  }

  std::uint64_t answered() const { return answered_; }

 private:
  void Answer(const httplib::Request& request, httplib::Response& response) {
    const auto input = NumberOf(request.get_param_value("input"));
    if (!input) {
      response.status = 400;
      response.set_content("{\"error\":\"input must be a whole number: /predict?input=7\"}\n",
                           kJson);
      return;
    }
    std::this_thread::sleep_for(options_.delay);
    const auto output = predictor_.Predict(*input, kPredictTimeout);
    if (!output.ok()) {
      response.status = 500;
      response.set_content("{\"error\":\"" + Plain(output.error().message) + "\"}\n", kJson);
      return;
    }
    ++answered_;
    response.set_content("{\"input\":" + std::to_string(*input) + ",\"output\":\"" +
                             std::to_string(output.value()) + "\",\"replica\":\"" +
                             Plain(options_.replica) + "\",\"vendor\":\"" + Plain(options_.vendor) +
                             "\",\"variant\":\"" + Plain(options_.variant) + "\"}\n",
                         kJson);
  }

  const ServeOptions& options_;
  Predictor& predictor_;
  httplib::Server server_;
  std::atomic<bool> taking_ = false, ended_ = false;
  std::atomic<std::uint64_t> answered_ = 0;
};

}  // namespace

int RunServe(const ServeOptions& options, const std::function<void(const std::string&)>& say) {
  auto predictor = Predictor::Open();
  if (!predictor.ok()) {
    say("cannot compute: " + predictor.error().message);
    return 1;
  }
  say("computes on " + predictor.value()->description());
  Service service(options, *predictor.value());
  const int port = service.Bind();
  if (port == 0) {
    say("cannot listen on port " + std::to_string(options.port));
    return 1;
  }
  say("listens on port " + std::to_string(port));
  service.Run(say);
  say("stopped after " + std::to_string(service.answered()) + " answers");
  return 0;
}

}  // namespace bimetal::workloads
