#include "workloads/serve/ask.h"

#include <httplib.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "workloads/program/stop.h"
#include "workloads/serve/predictor.h"

namespace bimetal::workloads {
namespace {

constexpr int kTimeoutSeconds = 10;
constexpr std::size_t kMostComplaints = 20;  // said one by one

// The value of a text field of a flat JSON object; empty where it has none.
std::string FieldOf(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const auto at = json.find(key);
  if (at == std::string::npos) return "";
  const auto begin = at + key.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

// What all clients have seen together. Thread-safe.
class Tally {
 public:
  explicit Tally(const std::function<void(const std::string&)>& say) : say_(say) {}

  void Good(const std::string& vendor) {
    const std::lock_guard lock(mutex_);
    ++asked_;
    ++by_vendor_[vendor.empty() ? "unknown" : vendor];
  }
  void Bad(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++asked_;
    if (++failed_ <= kMostComplaints) say_("request failed: " + what);
  }
  std::string Line() {
    const std::lock_guard lock(mutex_);
    std::string out = "asked " + std::to_string(asked_) + " failed " + std::to_string(failed_);
    for (const auto& [vendor, count] : by_vendor_) {
      out += " " + vendor + " " + std::to_string(count);
    }
    return out;
  }
  bool Clean() {
    const std::lock_guard lock(mutex_);
    return failed_ == 0 && asked_ > 0;
  }

 private:
  const std::function<void(const std::string&)>& say_;
  std::mutex mutex_;
  std::uint64_t asked_ = 0, failed_ = 0;            // guarded by mutex_
  std::map<std::string, std::uint64_t> by_vendor_;  // guarded by mutex_
};

void AskOnce(const AskOptions& options, std::uint64_t input, Tally& tally) {
  httplib::Client client(options.host, options.port);
  client.set_connection_timeout(kTimeoutSeconds);
  client.set_read_timeout(kTimeoutSeconds);
  const auto answer = client.Get("/predict?input=" + std::to_string(input));
  if (!answer) {
    tally.Bad(httplib::to_string(answer.error()));
  } else if (answer->status != 200) {
    tally.Bad("status " + std::to_string(answer->status));
  } else if (FieldOf(answer->body, "output") != std::to_string(PredictOnHost(input))) {
    tally.Bad("wrong answer: " + answer->body);
  } else {
    tally.Good(FieldOf(answer->body, "vendor"));
  }
}

}  // namespace

int RunAsk(const AskOptions& options, const std::function<void(const std::string&)>& say) {
  const auto end = std::chrono::steady_clock::now() + options.duration;
  const auto over = [end] { return StopRequested() || std::chrono::steady_clock::now() >= end; };
  Tally tally(say);
  std::vector<std::jthread> clients;
  for (std::uint64_t c = 0; c < options.clients; ++c) {
    clients.emplace_back([&, c] {
      // A few inputs only: each answer is computed here, too.
      for (std::uint64_t i = 0; !over(); ++i) {
        AskOnce(options, (i * options.clients + c) % 64, tally);
        SleepUnlessStopped(std::chrono::milliseconds(20));
      }
    });
  }
  while (!over()) {
    SleepUnlessStopped(std::chrono::milliseconds(1000));
    say(tally.Line());
  }
  clients.clear();  // joins: requests under way are seen to their end
  say(tally.Line());
  return tally.Clean() ? 0 : 1;
}

}  // namespace bimetal::workloads
