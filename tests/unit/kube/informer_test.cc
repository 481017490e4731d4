#include "kube/informer/informer.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/kubernetes.pb.h"
#include "core/base/log.h"
#include "tests/fakes/http_server.h"

namespace bimetal::kube {
namespace {

using test::HttpConnection;
using test::HttpRequest;
using test::HttpServer;
using testing::ElementsAre;
using testing::IsEmpty;

std::string Object(const std::string& name, const std::string& uid, const std::string& version) {
  return R"({"metadata":{"namespace":"ns","name":")" + name + R"(","uid":")" + uid +
         R"(","resourceVersion":")" + version + R"("}})";
}
std::string List(const std::string& version, const std::string& items) {
  return R"({"kind":"PodList","metadata":{"resourceVersion":")" + version + R"("},"items":[)" +
         items + "]}";
}
std::string Line(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
std::string Bookmark(const std::string& version) {
  return Line("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":")" + version +
                              R"("},"spec":{"containers":null}})");
}
std::string Gone() {
  return Line("ERROR", R"({"kind":"Status","status":"Failure","reason":"Expired","code":410})");
}

// Moves by the informer's own pauses only, which therefore take no time.
class PauseClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint{ms_}; }
  Millis Monotonic() const override { return Millis{ms_}; }
  std::atomic<std::int64_t> ms_{1'000'000};
};

// An informer against a scripted server. The script's steps answer one request each; after the last
// one, requests hang until the end.
class InformerTest : public testing::Test {
 protected:
  using Step = std::function<void(const HttpRequest&, HttpConnection&)>;

  static Step Reply(int status, std::string body, std::map<std::string, std::string> headers = {}) {
    return [=](const HttpRequest&, HttpConnection& c) {
      c.Respond(status, body, "application/json", headers);
    };
  }
  // A watch that sends these chunks and then ends in order.
  static Step Watch(std::vector<std::string> chunks) {
    return [=](const HttpRequest&, HttpConnection& c) {
      c.BeginChunked();
      for (const std::string& chunk : chunks) c.Chunk(chunk);
      c.EndChunked();
    };
  }
  static Step Cut() {
    return [](const HttpRequest&, HttpConnection& c) { c.Drop(); };
  }

  // Runs the script to its end and gives what the informer has said: "+ns/a/uid@version".
  std::vector<std::string> Run(std::vector<Step> script) {
    script_ = std::move(script);
    server_ = std::make_unique<HttpServer>(
        [this](const HttpRequest& request, HttpConnection& c) { Serve(request, c); });
    Config config;
    config.server = server_->url();
    InformerOptions options;
    options.list.ns = "ns";
    options.clock = &clock_;
    options.wait = [this](Millis time, const StopToken&) {
      const std::lock_guard lock(mutex_);
      pauses_.push_back(time);
      clock_.ms_ += time.v;
    };
    informer_ = std::make_unique<Informer<api::Pod>>(
        std::make_shared<Client>(MakeTransport(config).value()), options,
        [this](Event<api::Pod> event) { Note(event); });
    informer_->Start();
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return finished_; }));
    return events_;
  }
  void SetUp() override { SetLogLevel(LogLevel::kError); }
  void TearDown() override {
    if (!informer_) return;
    const auto begun = std::chrono::steady_clock::now();
    informer_->Stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  }

  void Serve(const HttpRequest& request, HttpConnection& c) {
    Step step;
    {
      const std::lock_guard lock(mutex_);
      if (next_ < script_.size()) step = script_[next_++];
      if (!step) {
        finished_ = true;
        changed_.notify_all();
      }
    }
    if (step) {
      step(request, c);
    } else {
      c.WaitForPeer();
    }
  }
  void Note(const Event<api::Pod>& event) {
    const auto& meta = event.object.metadata();
    const std::string object = event.key + "/" + meta.uid() + "@" + meta.resource_version();
    const std::lock_guard lock(mutex_);
    switch (event.kind) {
      case EventKind::kUpsert:
        events_.push_back("+" + object);
        break;
      case EventKind::kDelete:
        events_.push_back("-" + object);
        break;
      case EventKind::kSynced:
        events_.push_back("synced");
        break;
      case EventKind::kRestarted:
        events_.push_back("restarted");
        break;
      case EventKind::kError:
        events_.push_back("error " + event.key + std::string(ErrorCodeName(event.error.code)));
    }
  }
  std::vector<std::string> Targets(const std::string& key) {
    std::vector<std::string> values;
    for (const auto& request : server_->requests()) {
      values.push_back(request.query("watch").empty() ? "list" : request.query(key));
    }
    return values;
  }

  PauseClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Step> script_;
  std::size_t next_ = 0;
  bool finished_ = false;
  std::vector<std::string> events_;
  std::vector<Millis> pauses_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Informer<api::Pod>> informer_;
};

TEST_F(InformerTest, ListsThenWatchesAndResumesFromTheLastVersion) {
  EXPECT_THAT(Run({Reply(200, List("10", Object("a", "u1", "8"))),
                   Watch({Line("ADDED", Object("b", "u2", "11")) +
                              Line("MODIFIED", Object("a", "u1", "12")),
                          Line("DELETED", Object("b", "u2", "13"))})}),
              ElementsAre("+ns/a/u1@8", "synced", "+ns/b/u2@11", "+ns/a/u1@12", "-ns/b/u2@13"));
  EXPECT_THAT(Targets("resourceVersion"), ElementsAre("list", "10", "13"));
  EXPECT_TRUE(informer_->synced());
  EXPECT_EQ(informer_->requests(), 3);
}

TEST_F(InformerTest, BookmarksMoveTheVersionAndNothingElse) {
  EXPECT_THAT(Run({Reply(200, List("600", "")),
                   Watch({Line("MODIFIED", Object("a", "u1", "640")), Bookmark("650"),
                          Line("BOOKMARK", R"({"metadata":{"resourceVersion":"650"}})")}),
                   Watch({Line("MODIFIED", Object("a", "u1", "655"))})}),
              ElementsAre("synced", "+ns/a/u1@640", "+ns/a/u1@655"));
  EXPECT_THAT(Targets("resourceVersion"), ElementsAre("list", "600", "650", "655"));
}

TEST_F(InformerTest, AnExpiredVersionIsListedAnewThroughAllTrouble) {
  std::string events;
  for (int i = 1; i <= 5; ++i) {
    const std::string n = std::to_string(i);
    events += Line("ADDED", Object("p" + n, "u" + n, n));
  }
  auto seen =
      Run({Reply(200, List("0", "")), Watch({events + Gone()}), Reply(503, "busy"),
           Reply(503, "busy"), Cut(), Cut(),
           Reply(200, List("20", Object("p1", "u1", "1") + "," + Object("p2", "u2", "12") + "," +
                                     Object("p3", "u3", "13") + "," + Object("p4", "u4", "4")))});
  // Two answers of 503 are two errors. Two cuts are one or two: the library asks again by itself
  // where the connection that was cut had been used before.
  const auto errors = std::count(seen.begin(), seen.end(), "error Unavailable");
  EXPECT_GE(errors, 2);
  EXPECT_LE(errors, 4);
  std::erase(seen, "error Unavailable");
  EXPECT_THAT(seen, ElementsAre("synced", "+ns/p1/u1@1", "+ns/p2/u2@2", "+ns/p3/u3@3",
                                "+ns/p4/u4@4", "+ns/p5/u5@5", "restarted", "+ns/p2/u2@12",
                                "+ns/p3/u3@13", "-ns/p5/u5@5", "synced"));
}

TEST_F(InformerTest, AnHttp410OnTheWatchIsListedAnewToo) {
  EXPECT_THAT(Run({Reply(200, List("1", "")), Reply(410, R"({"status":"Failure","code":410})"),
                   Reply(200, List("2", Object("a", "u1", "2")))}),
              ElementsAre("synced", "restarted", "+ns/a/u1@2", "synced"));
}

TEST_F(InformerTest, ACutConnectionResumesWithoutAList) {
  EXPECT_THAT(Run({Reply(200, List("1", "")),
                   [](const HttpRequest&, HttpConnection& c) {
                     c.BeginChunked();
                     c.Chunk(Line("ADDED", Object("a", "u1", "2")) + R"({"type":"ADD)");
                     c.Drop();
                   },
                   Watch({Line("ADDED", Object("b", "u2", "3"))})}),
              ElementsAre("synced", "+ns/a/u1@2", "error Unavailable", "+ns/b/u2@3"));
  EXPECT_THAT(Targets("resourceVersion"), ElementsAre("list", "1", "2", "3"));
}

TEST_F(InformerTest, LateEventsOfAnOldUidDoNotTouchTheNewObject) {
  EXPECT_THAT(Run({Reply(200, List("1", Object("train-0", "u1", "1"))),
                   Watch({Line("ADDED", Object("train-0", "u2", "5")),
                          Line("MODIFIED", Object("train-0", "u1", "6")),
                          Line("DELETED", Object("train-0", "u1", "7")),
                          Line("MODIFIED", Object("train-0", "u2", "8"))})}),
              ElementsAre("+ns/train-0/u1@1", "synced", "-ns/train-0/u1@1", "+ns/train-0/u2@5",
                          "+ns/train-0/u2@8"));
}

TEST_F(InformerTest, OneUnreadableObjectHidesNoOther) {
  const std::string bad =
      R"({"metadata":{"namespace":"ns","name":"bad","uid":"u9"},"spec":{"priority":"high"}})";
  EXPECT_THAT(
      Run({Reply(200, List("1", Object("a", "u1", "1") + "," + bad)),
           Watch({Line("MODIFIED", bad), Line("ADDED", Object("b", "u2", "2"))})}),
      ElementsAre("+ns/a/u1@1", "error ns/badData", "synced", "error ns/badData", "+ns/b/u2@2"));
}

TEST_F(InformerTest, AListThatFailsHalfWayChangesNothing) {
  EXPECT_THAT(
      Run({Reply(200, List("1", Object("a", "u1", "1"))), Watch({Gone()}),
           Reply(
               200,
               R"({"kind":"PodList","metadata":{"resourceVersion":"2","continue":"x"},"items":[]})"),
           Reply(500, "boom"), Reply(200, List("3", Object("a", "u1", "1")))}),
      ElementsAre("+ns/a/u1@1", "synced", "restarted", "error Unavailable", "synced"));
}

TEST_F(InformerTest, WaitsAsLongAsTheServerAsks) {
  Run({Reply(429, "slow down", {{"Retry-After", "5"}}), Reply(200, List("1", ""))});
  EXPECT_GE(pauses_.at(0).v, 5000);
}

TEST_F(InformerTest, AsksFewerThanTwentyTimesAMinuteInPersistentTrouble) {
  const std::pair<const char*, std::vector<Step>> kTroubles[] = {
      {"watch fails", {Reply(503, "busy")}},
      {"watch ends empty at once", {Watch({})}},
      {"watch is gone at once", {Watch({Gone()}), Reply(200, List("1", ""))}},
      {"watch is cut at once", {Cut()}},
      {"forbidden", {Reply(403, R"({"status":"Failure","code":403})")}},
  };
  for (const auto& [name, trouble] : kTroubles) {
    SCOPED_TRACE(name);
    TearDown();
    informer_.reset();
    server_.reset();
    next_ = 0;
    finished_ = false;
    pauses_.clear();
    std::vector<Step> script{Reply(200, List("1", ""))};
    while (script.size() < 60) script.insert(script.end(), trouble.begin(), trouble.end());
    Run(script);
    // Requests between two pauses are one round; rounds take no time of their own here.
    std::int64_t total = 0;
    std::size_t rounds = 0;
    for (; rounds < pauses_.size() && total < 60'000; ++rounds) total += pauses_[rounds].v;
    const std::size_t a_round = trouble.size();
    EXPECT_LT(rounds * a_round + 1, 20u) << name;
    // Capped: it never gives up for good.
    for (const Millis pause : pauses_) EXPECT_LE(pause.v, 30'000);
  }
}

TEST_F(InformerTest, AsksFewerThanTwentyTimesAMinuteWhileTheListFails) {
  std::vector<Step> script{Reply(200, List("1", "")), Watch({Gone()})};
  while (script.size() < 40) script.push_back(Reply(503, "busy"));
  Run(script);
  std::int64_t total = 0;
  std::size_t rounds = 0;
  for (; rounds < pauses_.size() && total < 60'000; ++rounds) total += pauses_[rounds].v;
  EXPECT_LT(rounds + 2, 20u);
}

TEST_F(InformerTest, MemoryOfAHugeEventInSmallPiecesIsBounded) {
  std::string event = Line("ADDED", R"({"metadata":{"namespace":"ns","name":"a","uid":"u1",)"
                                    R"("resourceVersion":"2","annotations":{"x":")" +
                                        std::string(2'000'000, 'e') + R"("}}})");
  EXPECT_THAT(Run({Reply(200, List("1", "")),
                   [&](const HttpRequest&, HttpConnection& c) {
                     c.BeginChunked();
                     // The first part one byte a chunk, the rest in thousands.
                     for (std::size_t i = 0; i < 2000; ++i) c.Chunk(event.substr(i, 1));
                     for (std::size_t i = 2000; i < event.size(); i += 1000) {
                       c.Chunk(event.substr(i, 1000));
                     }
                     c.EndChunked();
                   }}),
              ElementsAre("synced", "+ns/a/u1@2"));
}

TEST_F(InformerTest, LastSyncAgeGrowsWhileNothingIsHeard) {
  Run({Reply(200, List("1", "")), Reply(503, "busy"), Reply(503, "busy")});
  EXPECT_GT(informer_->last_sync_age().v, 0);
  EXPECT_GE(informer_->failures(), 2);
}

}  // namespace
}  // namespace bimetal::kube
