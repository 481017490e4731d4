#include "operator/app/app.h"

#include <chrono>
#include <future>

#include "core/base/log.h"
#include "kube/codec/codec.h"

namespace bimetal::op {
namespace {

constexpr std::size_t kQueueCapacity = 20'000;
constexpr int kWriterThreads = 16;
constexpr Millis kTick = Seconds(1);
constexpr Millis kRefresh = Minutes(1);
constexpr Millis kReportDeadline = Seconds(5);
constexpr Millis kStuck = Seconds(30);

NodeOptions NodeOptionsOf(const Config& config, Metrics& metrics) {
  NodeOptions out;
  out.name_space = config.name_space;
  out.service_account = config.validation.service_account_name;
  out.nvidia_image = config.validation.nvidia_image;
  out.amd_image = config.validation.amd_image;
  out.pull_policy = std::string(PullPolicyName(config.validation.pull_policy));
  out.priority_class = config.jobs.priority_class_name;
  out.socket_dir = config.validation.socket_host_path;
  if (config.validation.simulation) out.machine_dir = config.validation.simulation_host_path;
  out.tolerations = config.validation.tolerations;
  out.stale_after = config.agent.stale_after;
  out.judged = [&metrics](const std::string& level, core::Vendor vendor, std::string_view result) {
    metrics.CountValidationRun(level, vendor, result);
  };
  return out;
}

JobOptions JobOptionsOf(const Config& config, Metrics& metrics) {
  JobOptions out;
  out.priority_class = config.jobs.priority_class_name;
  out.attempt.unschedulable_after = config.jobs.unschedulable_after;
  out.attempt.image_pull_grace = config.jobs.image_pull_grace;
  out.attempt.node_lost_after = config.jobs.node_lost_after;
  out.placed = [&metrics](const std::string& queue, Millis wait) {
    metrics.ObserveQueueWait(queue, wait);
  };
  return out;
}

GatedPodOptions GatedPodOptionsOf(const Config& config, Metrics& metrics) {
  GatedPodOptions out;
  out.unschedulable_after = config.jobs.unschedulable_after;
  out.placed = [&metrics](const std::string& queue, Millis wait) {
    metrics.ObserveQueueWait(queue, wait);
  };
  return out;
}

}  // namespace

App::App(const Clock& clock, std::shared_ptr<kube::Client> client, const Config& config,
         Metrics& metrics)
    : clock_(clock),
      client_(std::move(client)),
      config_(config),
      metrics_(metrics),
      loop_(clock, kQueueCapacity),
      writer_(client_, loop_, kWriterThreads,
              [&metrics](const std::string& verb, const std::string& resource,
                         std::optional<ErrorCode> error) {
                if (verb != "list") metrics.CountApiWrite(verb, resource, error);
              }),
      nodes_(clock, store_, writer_, NodeOptionsOf(config, metrics), [this] { WantCycle(); }),
      jobs_(clock, store_, nodes_, writer_, JobOptionsOf(config, metrics), [this] { WantCycle(); }),
      services_(
          clock, store_, writer_,
          ServiceOptions{config.jobs.priority_class_name, JobOptionsOf(config, metrics).attempt,
                         [this] { return cycle_.MakeSnapshot(); }},
          [this] { WantCycle(); }),
      gated_pods_(clock, store_, nodes_, writer_, GatedPodOptionsOf(config, metrics),
                  [this] { WantCycle(); }),
      recorder_({config.scheduler.record_folder, config.scheduler.recorded_cycles}),
      cycle_(clock, store_, nodes_, {&jobs_, &services_, &gated_pods_},
             [this](const auto& snapshot, const auto& plan) { recorder_.Record(snapshot, plan); }),
      step_(clock, {nodes_, jobs_, services_, gated_pods_, cycle_},
            [&metrics](std::string_view result, std::int64_t micros) {
              metrics.ObserveCycle(result, micros);
            }),
      fleet_(clock, store_, nodes_, jobs_, gated_pods_, cycle_, writer_),
      recount_(clock, loop_, store_, cycle_, writer_) {
  last_tick_ms_ = clock_.Monotonic().v;
  loop_.SetStep([this] { RunStep(); });
}

void App::WantCycle() {
  step_.Want();
  loop_.RequestStep();
}

App::~App() { Stop(); }

void App::Start() {
  WatchAll();
  loop_.Post([this] { Tick(); });
}

void App::Stop() {
  loop_.Stop();
  for (const auto& stop : stop_informers_) stop();
  stop_informers_.clear();
}

template <class T>
void App::Watch(const std::string& plural, std::function<void(const T&, bool gone)> take,
                kube::InformerOptions options) {
  ++unsynced_;
  auto synced_once = std::make_shared<bool>(false);
  auto informer = std::make_shared<kube::Informer<T>>(
      client_, std::move(options), [this, plural, take, synced_once](kube::Event<T> event) {
        switch (event.kind) {
          case kube::EventKind::kUpsert:
          case kube::EventKind::kDelete:
            loop_.Post([this, take, gone = event.kind == kube::EventKind::kDelete,
                        object = std::move(event.object)] {
              take(object, gone);
              loop_.RequestStep();
            });
            break;
          case kube::EventKind::kSynced:
            loop_.Post([this, synced_once] {
              if (std::exchange(*synced_once, true)) return;
              if (--unsynced_ == 0) Synced();
            });
            break;
          case kube::EventKind::kRestarted:
            metrics_.CountWatchRestart(plural, "error");
            break;
          case kube::EventKind::kError:
            Log(LogLevel::kWarning, "watch failed",
                {{"resource", plural}, {"object", event.key}, {"error", event.error.message}});
            metrics_.CountWatchRestart(plural,
                                       event.error.code == ErrorCode::kGone ? "gone" : "error");
            break;
        }
      });
  informer->Start();
  stop_informers_.push_back([informer] { informer->Stop(); });
  informers_.push_back(informer);
}

void App::WatchAll() {
  Watch<api::Node>("nodes", [this](const api::Node& node, bool gone) {
    const auto& name = node.metadata().name();
    if (gone) {
      store_.nodes.erase(name);
    } else {
      auto record = MakeNodeRecord(node);
      const auto it = store_.nodes.find(name);
      const bool heartbeat = it != store_.nodes.end() && SameForDecisions(it->second, record);
      store_.nodes[name] = std::move(record);
      if (heartbeat) return;
    }
    nodes_.Touch(name);
    jobs_.TouchAll();
    services_.TouchAll();
    step_.Want();
  });
  Watch<api::Pod>("pods", [this](const api::Pod& pod, bool gone) {
    PodRecord record = MakePodRecord(pod, store_.resources);
    const ObjectKey key{pod.metadata().namespace_(), pod.metadata().name()};
    if (gone)
      store_.RemovePod(key);
    else
      store_.PutPod(record);
    if (!record.validates.empty()) nodes_.Touch(record.holds.node.value);
    jobs_.OnPod(record, gone);
    services_.OnPod(record, gone);
    gated_pods_.OnPod(record, gone);
  });
  Watch<api::GPUNode>("gpunodes", [this](const api::GPUNode& node, bool gone) {
    if (gone)
      store_.gpu_nodes.erase(node.metadata().name());
    else
      store_.gpu_nodes[node.metadata().name()] = node;
    nodes_.Touch(node.metadata().name());
  });
  const auto fleet_changed = [this] {
    nodes_.TouchAll();
    jobs_.TouchAll();
    services_.TouchAll();
    step_.Want();
  };
  Watch<api::GPUPool>("gpupools", [this, fleet_changed](const api::GPUPool& pool, bool gone) {
    const auto it = store_.pools.find(pool.metadata().name());
    const bool same = !gone && it != store_.pools.end() &&
                      it->second.metadata().generation() == pool.metadata().generation();
    if (gone)
      store_.pools.erase(pool.metadata().name());
    else
      store_.pools[pool.metadata().name()] = pool;
    if (same) return;  // an echo of our own status
    store_.resources = Store::DefaultResources();
    for (const auto& p : PoolsOf(store_)) store_.resources[p.resource_name] = p.vendor;
    for (auto& [key, pod] : store_.pods) CountDevices(pod, store_.resources);
    gated_pods_.TouchAll();
    fleet_changed();
  });
  Watch<api::GPUQueue>("gpuqueues", [this](const api::GPUQueue& queue, bool gone) {
    const auto it = store_.queues.find(queue.metadata().name());
    const bool same = !gone && it != store_.queues.end() &&
                      it->second.metadata().generation() == queue.metadata().generation();
    if (gone)
      store_.queues.erase(queue.metadata().name());
    else
      store_.queues[queue.metadata().name()] = queue;
    if (same) return;
    gated_pods_.TouchAll();
    step_.Want();
  });
  Watch<api::ValidationProfile>("validationprofiles",
                                [this, fleet_changed](const api::ValidationProfile& p, bool gone) {
                                  if (gone)
                                    store_.profiles.erase(p.metadata().name());
                                  else
                                    store_.profiles[p.metadata().name()] = p;
                                  fleet_changed();
                                });
  Watch<api::PriceBook>("pricebooks", [this](const api::PriceBook& book, bool gone) {
    if (gone)
      store_.price_books.erase(book.metadata().name());
    else
      store_.price_books[book.metadata().name()] = book;
    jobs_.TouchAll();
    services_.TouchAll();
  });
  Watch<api::Namespace>("namespaces", [this](const api::Namespace& ns, bool gone) {
    if (gone)
      store_.namespaces.erase(ns.metadata().name());
    else
      store_.namespaces[ns.metadata().name()] = {ns.metadata().labels().begin(),
                                                 ns.metadata().labels().end()};
    gated_pods_.TouchAll();
    step_.Want();
  });
  Watch<api::PriorityClass>("priorityclasses", [this](const api::PriorityClass& c, bool gone) {
    if (gone)
      store_.priorities.erase(c.metadata().name());
    else
      store_.priorities[c.metadata().name()] = c.value();
    jobs_.TouchAll();
    services_.TouchAll();
    step_.Want();
  });
  Watch<api::GPUJob>("gpujobs", [this](const api::GPUJob& job, bool gone) {
    if (gone)
      jobs_.OnJobDeleted(job);
    else
      jobs_.OnJob(job);
  });
  Watch<api::GPUService>("gpuservices", [this](const api::GPUService& service, bool gone) {
    if (gone)
      services_.OnServiceDeleted(service);
    else
      services_.OnService(service);
  });
  // Those of GPUServices alone.
  kube::InformerOptions ours;
  ours.list.label_selector = kServiceUidLabel;
  Watch<api::Service>(
      "services",
      [this](const api::Service& address, bool gone) { services_.OnAddress(address, gone); },
      std::move(ours));
}

void App::Synced() {
  Log(LogLevel::kInfo, "all watches have synced, decisions begin",
      {{"nodes", store_.nodes.size()}, {"pods", store_.pods.size()}});
  CreateDefaults();
  nodes_.Start();
  jobs_.Start();
  services_.Start();
  gated_pods_.Start();
  deciding_ = true;
  WantCycle();
}

void App::CreateDefaults() {
  const auto create = [this](const auto& object, const std::string& plural) {
    Write write{"create", plural, "", object.metadata().name(), kube::ToJson(object), {}, {}};
    write.run = [object](kube::Client& client) -> Status {
      const auto created = client.Create(object);
      if (!created && created.error().code != ErrorCode::kAlreadyExists) {
        return tl::unexpected<Error>(created.error());
      }
      return {};
    };
    write.done = [name = object.metadata().name()](const Status& status) {
      if (!status) {
        Log(LogLevel::kWarning, "default object could not be created",
            {{"object", name}, {"error", status.error().message}});
      }
    };
    writer_.Submit(std::move(write));
  };
  if (config_.defaults.queue && store_.queues.empty()) {
    api::GPUQueue queue;
    queue.mutable_metadata()->set_name("default");
    queue.mutable_spec()->set_order("Backfill");
    create(queue, "gpuqueues");
  }
  if (config_.defaults.pools && store_.pools.empty()) {
    for (const auto vendor : core::kVendors) {
      api::GPUPool pool;
      pool.mutable_metadata()->set_name(std::string(core::VendorName(vendor)));
      pool.mutable_spec()->set_vendor(std::string(core::VendorName(vendor)));
      pool.mutable_spec()->set_gate(config_.defaults.enforce ? "Enforce" : "Observe");
      pool.mutable_spec()->set_device_plugin(
          std::string(DevicePluginName(config_.defaults.device_plugin)));
      pool.mutable_spec()->set_price_book_name(config_.defaults.price_book);
      pool.mutable_spec()->set_validation_profile_name(config_.defaults.validation_profile);
      create(pool, "gpupools");
    }
  }
}

void App::RunStep() {
  if (!deciding_) return;
  step_.Run();
  ArmTimer();
}

// One timer for whatever is due first without an event.
void App::ArmTimer() {
  const std::optional<TimePoint> next = step_.NextWake();
  if (!next) return;
  const Millis delay = std::max(Millis{1}, *next - clock_.Now());
  const Millis when = clock_.Monotonic() + delay;
  if (timer_ && *timer_ <= when) return;
  timer_ = when;
  loop_.At(when, [this, when] {
    if (timer_ == when) timer_.reset();
    loop_.RequestStep();
  });
}

void App::Tick() {
  last_tick_ms_ = clock_.Monotonic().v;
  if (deciding_) {
    // Queue positions are refreshed once a minute even if nothing happens.
    if (clock_.Monotonic() >= next_refresh_) {
      next_refresh_ = clock_.Monotonic() + kRefresh;
      WantCycle();
    }
    recount_.Tick();
    fleet_.Tick([this](FleetSample sample) {
      sample.books_difference_milli = recount_.difference_milli();
      sample.event_queue_depth = static_cast<std::int64_t>(loop_.Depth());
      metrics_.Update(std::move(sample));
    });
  }
  metrics_.ObserveLoopLag(loop_.Lag().v * 1000);
  loop_.At(clock_.Monotonic() + kTick, [this] { Tick(); });
}

Result<api::ReportNodeReply> App::Report(api::ReportNodeRequest request) {
  if (!deciding_) {
    return Fail(ErrorCode::kUnavailable, "the operator has not read the cluster yet; report again");
  }
  auto promise = std::make_shared<std::promise<api::ReportNodeReply>>();
  auto future = promise->get_future();
  const bool posted = loop_.Post([this, promise, request = std::move(request)] {
    promise->set_value(nodes_.OnReport(request));
    loop_.RequestStep();
  });
  if (!posted) return Fail(ErrorCode::kUnavailable, "the operator is stopping; report again");
  if (future.wait_for(std::chrono::milliseconds(kReportDeadline.v)) != std::future_status::ready) {
    return Fail(ErrorCode::kDeadline, "the operator is busy; report again");
  }
  return future.get();
}

Status App::Healthy() const {
  const Millis silent = clock_.Monotonic() - Millis{last_tick_ms_.load()};
  if (silent > kStuck) {
    return Fail(ErrorCode::kInternal,
                "the decision loop has not come round for " + FormatDuration(silent));
  }
  return {};
}

}  // namespace bimetal::op
