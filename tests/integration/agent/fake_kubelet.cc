#include "tests/integration/agent/fake_kubelet.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "agent/kubelet/deviceplugin.grpc.pb.h"
#include "core/base/result.h"

namespace bimetal::agent {
namespace {

constexpr std::chrono::seconds kPatience{30};

}  // namespace

class FakeKubelet::Impl final : public v1beta1::Registration::Service {
 public:
  explicit Impl(const std::string& folder) : folder_(folder) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + folder + "/kubelet.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    BIMETAL_CHECK(server_ != nullptr);
  }
  ~Impl() override {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    DropStreams();
  }

  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    if (request->version() != "v1beta1") {
      return {grpc::StatusCode::INVALID_ARGUMENT, "unsupported version"};
    }
    auto stub = Dial(request->endpoint());
    // The real kubelet asks this before it answers the registration.
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1beta1::DevicePluginOptions options;
    const auto asked = stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &options);
    if (!asked.ok()) return asked;
    const std::lock_guard lock(mutex_);
    ++resources_[request->resource_name()].registrations;
    endpoints_[request->resource_name()] = request->endpoint();
    Stream& stream = streams_.emplace_back();
    stream.stub = std::move(stub);
    stream.thread =
        std::thread([this, &stream, name = request->resource_name()] { Watch(stream, name); });
    changed_.notify_all();
    return grpc::Status::OK;
  }

  void DropStreams() {
    std::list<Stream> ended;
    {
      const std::lock_guard lock(mutex_);
      for (auto& stream : streams_) stream.context.TryCancel();
      ended.splice(ended.end(), streams_);
    }
    for (auto& stream : ended) stream.thread.join();
  }

  FakeResource resource(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto at = resources_.find(name);
    return at == resources_.end() ? FakeResource() : at->second;
  }

  bool WaitFor(const std::string& name,
               const std::function<bool(const FakeResource&)>& condition) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      const auto at = resources_.find(name);
      return at != resources_.end() && condition(at->second);
    });
  }

  FakeAllocation Allocate(const std::string& name, const std::vector<std::string>& ids) const {
    std::string endpoint;
    {
      const std::lock_guard lock(mutex_);
      const auto at = endpoints_.find(name);
      if (at == endpoints_.end()) return {"not registered", {}, {}};
      endpoint = at->second;
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1beta1::AllocateRequest request;
    request.add_container_requests()->mutable_devices_ids()->Assign(ids.begin(), ids.end());
    v1beta1::AllocateResponse reply;
    const auto status = Dial(endpoint)->Allocate(&context, request, &reply);
    FakeAllocation out;
    if (!status.ok()) {
      out.error = status.error_message();
      return out;
    }
    const auto& container = reply.container_responses(0);
    out.environment = {container.envs().begin(), container.envs().end()};
    for (const auto& device : container.devices()) out.device_files.push_back(device.host_path());
    return out;
  }

 private:
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
    std::thread thread;
  };

  std::unique_ptr<v1beta1::DevicePlugin::Stub> Dial(const std::string& endpoint) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1beta1::DevicePlugin::NewStub(grpc::CreateCustomChannel(
        "unix:" + folder_ + "/" + endpoint, grpc::InsecureChannelCredentials(), arguments));
  }

  void Watch(Stream& stream, const std::string& name) {
    auto reader = stream.stub->ListAndWatch(&stream.context, v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    while (reader->Read(&list)) {
      const std::lock_guard lock(mutex_);
      auto& resource = resources_[name];
      ++resource.lists;
      resource.health.clear();
      for (const auto& device : list.devices()) resource.health[device.id()] = device.health();
      changed_.notify_all();
    }
    static_cast<void>(reader->Finish());
  }

  const std::string folder_;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, FakeResource> resources_;  // all below guarded by mutex_
  std::map<std::string, std::string> endpoints_;
  std::list<Stream> streams_;
};

FakeKubelet::FakeKubelet(std::string folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  impl_ = std::make_unique<Impl>(folder_);
}
FakeKubelet::~FakeKubelet() = default;

void FakeKubelet::Restart() {
  impl_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::remove(entry.path());
  }
  impl_ = std::make_unique<Impl>(folder_);
}

void FakeKubelet::DropStreams() { impl_->DropStreams(); }

FakeResource FakeKubelet::resource(const std::string& name) const { return impl_->resource(name); }

bool FakeKubelet::WaitFor(const std::string& name,
                          const std::function<bool(const FakeResource&)>& condition) const {
  return impl_->WaitFor(name, condition);
}

bool FakeKubelet::WaitForHealth(const std::string& name,
                                const std::map<std::string, std::string>& health) const {
  return impl_->WaitFor(name, [&](const FakeResource& now) { return now.health == health; });
}

FakeAllocation FakeKubelet::Allocate(const std::string& name,
                                     const std::vector<std::string>& ids) const {
  return impl_->Allocate(name, ids);
}

}  // namespace bimetal::agent
