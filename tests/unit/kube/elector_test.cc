#include "kube/leader/leader.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

#include "kube/codec/codec.h"
#include "tests/fakes/http_server.h"

namespace bimetal::kube {
namespace {

using test::HttpConnection;
using test::HttpRequest;
using test::HttpServer;

// The one lease of a cluster, with resource versions.
class LeaseServer {
 public:
  explicit LeaseServer(const std::string& holder) : holder_(holder) {}

  HttpServer::Handler handler() {
    return [this](const HttpRequest& request, HttpConnection& c) {
      const std::lock_guard lock(mutex_);
      if (down_) {
        c.Drop();
        return;
      }
      if (request.method == "PATCH") {
        last_patch_ = request.body;
        if (request.body.find("\"resourceVersion\":\"" + std::to_string(version_) + "\"") ==
            std::string::npos) {
          c.Respond(409, R"({"status":"Failure","reason":"Conflict","code":409})");
          return;
        }
        ++version_;
        const std::size_t at = request.body.find("\"holderIdentity\":\"");
        holder_ = at == std::string::npos
                      ? ""
                      : request.body.substr(at + 18, request.body.find('"', at + 18) - at - 18);
      }
      c.Respond(200, R"({"metadata":{"name":"l","namespace":"ns","resourceVersion":")" +
                         std::to_string(version_) + R"("},"spec":{"holderIdentity":")" + holder_ +
                         R"(","leaseDurationSeconds":8}})");
    };
  }
  void SetDown(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  std::string holder() const {
    const std::lock_guard lock(mutex_);
    return holder_;
  }

 private:
  mutable std::mutex mutex_;
  std::string holder_;
  std::string last_patch_;
  int version_ = 1;
  bool down_ = false;
};

class ElectorTest : public testing::Test {
 protected:
  std::unique_ptr<LeaderElector> Make(const HttpServer& server) {
    Config config;
    config.server = server.url();
    LeaderConfig leader{"ns", "l", "me", Millis{1600}, Millis{1200}, Millis{100}};
    LeaderCallbacks callbacks;
    callbacks.on_started = [this] { Note(true); };
    callbacks.on_stopped = [this] { Note(false); };
    return std::make_unique<LeaderElector>(std::make_shared<Client>(MakeTransport(config).value()),
                                           leader, callbacks);
  }
  bool WaitUntil(bool leading) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return noted_ && leading_ == leading; });
  }

  void Note(bool leading) {
    const std::lock_guard lock(mutex_);
    noted_ = true;
    leading_ = leading;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool noted_ = false;
  bool leading_ = false;
};

TEST_F(ElectorTest, LeadsAndGivesTheLeaseBack) {
  LeaseServer lease("");
  HttpServer server(lease.handler());
  const auto elector = Make(server);
  elector->Start();
  ASSERT_TRUE(WaitUntil(true));
  EXPECT_TRUE(elector->IsLeader());
  EXPECT_EQ(lease.holder(), "me");
  EXPECT_EQ(elector->holder(), "me");
  elector->Stop();
  EXPECT_FALSE(elector->IsLeader());
  EXPECT_FALSE(leading_);
  EXPECT_EQ(lease.holder(), "");
}

TEST_F(ElectorTest, StepsDownWhenTheApiServerIsLostAndComesBack) {
  LeaseServer lease("me");
  HttpServer server(lease.handler());
  const auto elector = Make(server);
  elector->Start();
  ASSERT_TRUE(WaitUntil(true));
  lease.SetDown(true);
  ASSERT_TRUE(WaitUntil(false));
  EXPECT_FALSE(elector->IsLeader());
  lease.SetDown(false);
  EXPECT_TRUE(WaitUntil(true));
}

}  // namespace
}  // namespace bimetal::kube
