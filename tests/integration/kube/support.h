#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "api/kubernetes.pb.h"
#include "kube/client/client.h"
#include "kube/config/config.h"
#include "kube/informer/informer.h"

namespace bimetal::test {

// Tests against the API server of BIMETAL_TEST_KUBECONFIG, each in a namespace of its own.
class ClusterTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Has the server know our kind of that plural, from manifests/crds; it may know it already.
  // Fails the test where it does not come to serve it.
  template <class T>
  void Define(const std::string& plural) {
    CreateDefinition(plural);
    // Served a moment later.
    for (int i = 0; i < 200 && !client_->ListAll<T>({.ns = ns_}); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ASSERT_TRUE(client_->ListAll<T>({.ns = ns_})) << plural << " are not served";
  }

  // A pod that never runs anywhere (no such scheduler).
  std::string PodJson(const std::string& name) const;
  api::ConfigMap MakeConfigMap(const std::string& name, const std::string& value) const;
  std::shared_ptr<kube::Client> NewClient(kube::Config config) const;

  kube::Config config_;
  std::shared_ptr<kube::Client> client_;
  std::string ns_;

 private:
  void CreateDefinition(const std::string& plural);
};

// The events of an informer, with waiting for one of them. Thread-safe.
template <class T>
class EventLog {
 public:
  void Add(kube::Event<T> event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // True once an event from `from` on satisfies `match`; false after the time.
  bool WaitFor(const std::function<bool(const kube::Event<T>&)>& match,
               std::chrono::milliseconds time = std::chrono::seconds(30)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] {
      for (const auto& event : events_) {
        if (match(event)) return true;
      }
      return false;
    });
  }
  bool WaitKind(kube::EventKind kind, const std::string& key = "") {
    return WaitFor(
        [&](const kube::Event<T>& e) { return e.kind == kind && (key.empty() || e.key == key); });
  }
  std::vector<kube::Event<T>> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<kube::Event<T>> events_;
};

}  // namespace bimetal::test
