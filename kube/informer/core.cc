#include "kube/informer/core.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "kube/informer/store.h"

namespace bimetal::kube {
namespace {

using google::protobuf::Message;

// A watch that lived this long did its work; what ended it is not a sign of trouble.
constexpr Millis kHealthyWatch = Seconds(5);

void WaitFor(Millis time, const StopToken& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::milliseconds(time.v), [] { return false; });
}

}  // namespace

// List, watch, wait, again. Runs on the informer's thread; the atomics are read by others.
class InformerCore::Loop {
 public:
  Loop(std::shared_ptr<Client> client, const ResourceInfo& info, const Message& prototype,
       InformerOptions options, std::function<void(RawEvent)> on_event)
      : client_(std::move(client)),
        info_(info),
        prototype_(prototype),
        options_(std::move(options)),
        on_event_(std::move(on_event)),
        clock_(options_.clock != nullptr ? *options_.clock : system_clock_),
        backoff_(options_.backoff, options_.seed),
        random_(options_.seed),
        store_([this](bool is_delete, const std::string& key, ObjectPtr object) {
          Emit(is_delete ? EventKind::kDelete : EventKind::kUpsert, key, std::move(object), {});
        }) {
    if (!options_.wait) options_.wait = WaitFor;
    fresh_at_ = clock_.Monotonic().v;
  }

  void Run(const StopToken& stop) {
    while (!stop.stop_requested()) {
      watch_begun_.reset();
      const std::int64_t sent = requests_;
      Status status = version_.empty() ? ListOnce(stop) : Status();
      if (status) status = WatchOnce(stop);
      if (stop.stop_requested()) return;
      if (!status) Complain(status.error());
      if (watch_begun_ && clock_.Monotonic() - *watch_begun_ >= kHealthyWatch) {
        backoff_.Reset();
        failures_ = 0;
        if (status) continue;  // the server ended it in order: go on at once
      }
      Rest(status, requests_ - sent, stop);
    }
  }

  bool synced() const { return synced_; }
  Millis last_sync_age() const { return Millis{clock_.Monotonic().v - fresh_at_}; }
  std::int64_t requests() const { return requests_; }
  int failures() const { return failures_; }

 private:
  class Pages;

  Status ListOnce(const StopToken& stop);
  Status WatchOnce(const StopToken& stop);
  Result<bool> OnLine(const Result<WatchLine>& line, std::unique_ptr<Message>& object);

  // One step of the backoff for each request of the round that came to nothing, so that a round of
  // two requests costs the server no more than two rounds of one.
  void Rest(const Status& status, std::int64_t requests, const StopToken& stop) {
    ++failures_;
    Millis pause = backoff_.Next();
    for (std::int64_t i = 1; i < std::min<std::int64_t>(requests, 3); ++i) pause = backoff_.Next();
    if (!status) pause.v = std::max(pause.v, status.error().retry_after_ms);
    options_.wait(pause, stop);
  }

  void Complain(const Error& error) {
    if (error.code == ErrorCode::kGone) {
      version_.clear();
      // The version we asked from has expired: ordinary, and the next round mends it.
      Log(LogLevel::kInfo, "watch expired, listing again", {{"resource", info_.plural}});
      return;
    }
    Log(LogLevel::kWarning, "informer failed and tries again",
        {{"resource", info_.plural},
         {"code", ErrorCodeName(error.code)},
         {"error", error.message}});
    Emit(EventKind::kError, "", nullptr, error);
  }

  void Emit(EventKind kind, std::string key, ObjectPtr object, Error error) {
    on_event_(RawEvent{kind, std::move(object), std::move(key), std::move(error)});
  }

  void Fresh() { fresh_at_ = clock_.Monotonic().v; }

  std::shared_ptr<Client> client_;
  const ResourceInfo info_;
  const Message& prototype_;
  InformerOptions options_;
  std::function<void(RawEvent)> on_event_;
  const SystemClock system_clock_;
  const Clock& clock_;
  Backoff backoff_;
  std::mt19937_64 random_;
  InformerStore store_;
  // From where to watch; empty: list first.
  std::string version_;
  bool relisting_ = false;
  // When the last watch began, if the last round came so far.
  std::optional<Millis> watch_begun_;
  std::atomic<bool> synced_{false};
  std::atomic<std::int64_t> fresh_at_{0};
  std::atomic<std::int64_t> requests_{0};
  std::atomic<int> failures_{0};
};

// Takes the pages of a list into the store once the whole list is there: a list that fails half-way
// must not look like a cluster that has shrunk.
class InformerCore::Loop::Pages final : public ItemSink {
 public:
  explicit Pages(const Message& prototype) : prototype_(prototype) {}

  Message* New() override {
    item_.reset(prototype_.New());
    return item_.get();
  }
  Status Done(Message*) override {
    objects.push_back(std::move(item_));
    return {};
  }
  // One object that we cannot read must not hide all others; without a name, though, we could not
  // say which one it is, and the list fails.
  Status Failed(Message* item, Error error) override {
    std::string key = KeyOf(*item).Text();
    if (key.empty()) return tl::unexpected<Error>(std::move(error));
    unreadable.emplace_back(std::move(key), std::move(error));
    return {};
  }
  void Clear() {
    objects.clear();
    unreadable.clear();
  }

  std::vector<ObjectPtr> objects;
  std::vector<std::pair<std::string, Error>> unreadable;

 private:
  const Message& prototype_;
  std::unique_ptr<Message> item_;
};

Status InformerCore::Loop::ListOnce(const StopToken& stop) {
  if (synced_ && !std::exchange(relisting_, true)) Emit(EventKind::kRestarted, "", nullptr, {});
  Pages pages(prototype_);
  std::int64_t sent = 0;
  Result<std::string> version = client_->ListInto(
      info_, options_.list, pages, [&pages] { pages.Clear(); }, stop, &sent);
  requests_ += sent;
  if (!version) return tl::unexpected<Error>(std::move(version).error());
  store_.BeginList();
  for (ObjectPtr& object : pages.objects) store_.Upsert(std::move(object));
  for (auto& [key, error] : pages.unreadable) {
    store_.Keep(key);
    Emit(EventKind::kError, key, nullptr, WithContext(std::move(error), "list " + info_.plural));
  }
  store_.EndList();
  version_ = std::move(version).value();
  synced_ = true;
  relisting_ = false;
  Fresh();
  Emit(EventKind::kSynced, "", nullptr, {});
  return {};
}

Status InformerCore::Loop::WatchOnce(const StopToken& stop) {
  WatchOptions watch;
  watch.ns = options_.list.ns;
  watch.label_selector = options_.list.label_selector;
  watch.field_selector = options_.list.field_selector;
  watch.resource_version = version_;
  // Spread, so that the watches of a fleet do not return together.
  watch.timeout = Seconds(300 + static_cast<std::int64_t>(random_() % 300));
  watch_begun_ = clock_.Monotonic();
  std::unique_ptr<Message> object(prototype_.New());
  ++requests_;
  return client_->WatchInto(
      info_, watch, object.get(),
      [&](const Result<WatchLine>& line) { return OnLine(line, object); }, stop);
}

Result<bool> InformerCore::Loop::OnLine(const Result<WatchLine>& line,
                                        std::unique_ptr<Message>& object) {
  if (!line) {
    const std::string key = KeyOf(*object).Text();
    // Nameless trouble may be anything, a cut line included: make the watch again from the last
    // version that we know.
    if (key.empty()) return tl::unexpected<Error>(line.error());
    if (const std::string version = KeyOf(*object).resource_version; !version.empty()) {
      version_ = version;
    }
    Emit(EventKind::kError, key, nullptr, line.error());
    return true;
  }
  Fresh();
  failures_ = 0;
  if (line->type == WatchType::kBookmark) {
    version_ = line->resource_version;
    return true;
  }
  // The message that the decoder fills stays ours; the store gets a copy by move.
  std::unique_ptr<Message> taken(object->New());
  taken->GetReflection()->Swap(taken.get(), object.get());
  const std::string version = KeyOf(*taken).resource_version;
  if (line->type == WatchType::kDeleted) {
    store_.Delete(std::move(taken));
  } else {
    store_.Upsert(std::move(taken));
  }
  if (!version.empty()) version_ = version;
  return true;
}

InformerCore::InformerCore(std::shared_ptr<Client> client, const ResourceInfo& info,
                           const google::protobuf::Message& prototype, InformerOptions options,
                           std::function<void(RawEvent)> on_event)
    : loop_(std::make_unique<Loop>(std::move(client), info, prototype, std::move(options),
                                   std::move(on_event))) {}

InformerCore::~InformerCore() { Stop(); }

void InformerCore::Start() {
  BIMETAL_CHECK(!thread_.joinable());
  thread_ = std::jthread([this](const StopToken& stop) { loop_->Run(stop); });
}

void InformerCore::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool InformerCore::synced() const { return loop_->synced(); }
Millis InformerCore::last_sync_age() const { return loop_->last_sync_age(); }
std::int64_t InformerCore::requests() const { return loop_->requests(); }
int InformerCore::failures() const { return loop_->failures(); }

}  // namespace bimetal::kube
