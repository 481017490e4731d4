#include "kube/informer/informer.h"

#include <chrono>
#include <cstdlib>

#include "tests/fakes/tcp_relay.h"
#include "tests/integration/kube/support.h"

namespace bimetal::test {
namespace {

using kube::EventKind;

template <class T>
std::unique_ptr<kube::Informer<T>> Start(std::shared_ptr<kube::Client> client,
                                         const std::string& ns, EventLog<T>& log) {
  kube::InformerOptions options;
  options.list.ns = ns;
  auto informer = std::make_unique<kube::Informer<T>>(
      std::move(client), options, [&log](kube::Event<T> event) { log.Add(std::move(event)); });
  informer->Start();
  return informer;
}

TEST_F(ClusterTest, AnInformerListsThenWatches) {
  ASSERT_TRUE(client_->Create(MakeConfigMap("before", "1")));
  EventLog<api::ConfigMap> log;
  const auto informer = Start<api::ConfigMap>(client_, ns_, log);
  ASSERT_TRUE(log.WaitKind(EventKind::kSynced));
  EXPECT_TRUE(log.WaitKind(EventKind::kUpsert, ns_ + "/before"));
  ASSERT_TRUE(client_->Create(MakeConfigMap("after", "1")));
  EXPECT_TRUE(log.WaitKind(EventKind::kUpsert, ns_ + "/after"));
  ASSERT_TRUE(client_->Delete<api::ConfigMap>(ns_, "before"));
  EXPECT_TRUE(log.WaitKind(EventKind::kDelete, ns_ + "/before"));
  EXPECT_LT(informer->last_sync_age(), Seconds(20));

  const auto begun = std::chrono::steady_clock::now();
  informer->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
}

TEST_F(ClusterTest, AWatchSurvivesADroppedConnection) {
  const std::string target = config_.server.substr(config_.server.find("://") + 3);
  const std::size_t colon = target.find(':');
  TcpRelay relay(target.substr(0, colon), std::stoi(target.substr(colon + 1)));
  kube::Config config = config_;
  config.server = "https://127.0.0.1:" + std::to_string(relay.port());
  EventLog<api::ConfigMap> log;
  const auto informer = Start<api::ConfigMap>(NewClient(config), ns_, log);
  ASSERT_TRUE(log.WaitKind(EventKind::kSynced));
  log.Take();
  for (int round = 0; round < 3; ++round) {
    relay.DropConnections();
    const std::string name = "r" + std::to_string(round);
    ASSERT_TRUE(client_->Create(MakeConfigMap(name, "1")));
    EXPECT_TRUE(log.WaitKind(EventKind::kUpsert, ns_ + "/" + name));
  }
  // Resumed, not listed again.
  for (const auto& event : log.Take()) EXPECT_NE(event.kind, EventKind::kRestarted);
}

TEST_F(ClusterTest, AWatchSurvivesARestartOfTheApiServer) {
  const char* cluster = std::getenv("BIMETAL_TEST_CLUSTER");
  const char* source = std::getenv("BIMETAL_SOURCE_DIR");
  if (cluster == nullptr || *cluster == '\0' || source == nullptr) {
    GTEST_SKIP()
        << "SKIPPED: BIMETAL_TEST_CLUSTER is not set (the name of a cluster of dev/cluster); "
           "the API server cannot be restarted without it";
  }
  EventLog<api::ConfigMap> log;
  const auto informer = Start<api::ConfigMap>(client_, ns_, log);
  ASSERT_TRUE(log.WaitKind(EventKind::kSynced));
  const std::int64_t before = informer->requests();
  const std::string restart =
      std::string(source) + "/dev/cluster restart --name " + cluster + " apiserver";
  ASSERT_EQ(std::system(restart.c_str()), 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (!client_->Create(MakeConfigMap("after", "1")) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // a server of another process
  }
  EXPECT_TRUE(log.WaitFor(
      [&](const auto& e) { return e.kind == EventKind::kUpsert && e.key == ns_ + "/after"; },
      std::chrono::seconds(60)));
  EXPECT_LT(informer->requests() - before, 30);
  // "after" may have come with a list; what the new watch brings proves that it runs.
  ASSERT_TRUE(client_->Create(MakeConfigMap("later", "1")));
  EXPECT_TRUE(log.WaitKind(EventKind::kUpsert, ns_ + "/later"));
  EXPECT_EQ(informer->failures(), 0);

  // A restarted server's cache begins later than version 1: a real 410.
  kube::WatchOptions old;
  old.ns = ns_;
  old.resource_version = "1";
  old.timeout = Seconds(5);
  const Status expired =
      client_->Watch<api::ConfigMap>(old, [](kube::WatchEvent<api::ConfigMap>) { return true; });
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, ErrorCode::kGone) << expired.error().message;
}

TEST_F(ClusterTest, ANameMadeAnewIsADeleteAndAnUpsert) {
  ASSERT_TRUE(client_->Create(MakeConfigMap("again", "1")));
  EventLog<api::ConfigMap> log;
  const auto informer = Start<api::ConfigMap>(client_, ns_, log);
  ASSERT_TRUE(log.WaitKind(EventKind::kSynced));
  const std::string old_uid = client_->Get<api::ConfigMap>(ns_, "again")->metadata().uid();
  ASSERT_TRUE(client_->Delete<api::ConfigMap>(ns_, "again"));
  const auto made = client_->Create(MakeConfigMap("again", "2"));
  ASSERT_TRUE(made);
  EXPECT_TRUE(log.WaitFor([&](const auto& e) {
    return e.kind == EventKind::kDelete && e.object.metadata().uid() == old_uid;
  }));
  EXPECT_TRUE(log.WaitFor([&](const auto& e) {
    return e.kind == EventKind::kUpsert && e.object.metadata().uid() == made->metadata().uid();
  }));
}

}  // namespace
}  // namespace bimetal::test
