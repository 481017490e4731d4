#include "agent/kubelet/plugin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "agent/kubelet/plugin_service.h"
#include "core/base/log.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un.sun_path less its final zero
constexpr int kMaxThreads = 16;
constexpr std::chrono::seconds kRegisterDeadline{5};
constexpr std::chrono::milliseconds kShutdownGrace{500};

// Tells one socket file from another of the same name. The time is in it because a file system may
// give an inode number again at once.
using FileId = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;

std::optional<FileId> IdOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId{info.st_dev, info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

// The same without the time, which changes with mode and owner.
std::optional<std::pair<dev_t, ino_t>> InodeOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return std::pair{info.st_dev, info.st_ino};
}

}  // namespace

class PluginServer::Impl {
 public:
  Impl(PluginOptions options, std::vector<PluginDevice> devices, bool simulated)
      : options_(std::move(options)),
        devices_(options_.vendor),
        socket_(options_.folder + "/" + options_.socket_name),
        kubelet_(options_.folder + "/kubelet.sock") {
    devices_.Set(std::move(devices), simulated);
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Offer(std::vector<PluginDevice> devices, bool simulated) {
    devices_.Set(std::move(devices), simulated);
  }

  PluginStatus status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  using Steady = std::chrono::steady_clock;

  void Run() {
    while (true) {
      Keep();
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(options_.poll.v), [&] { return stopping_; });
      if (stopping_) break;
    }
    devices_.Close();
    StopServer();
  }

  // One look at the folder: serve where our socket is missing, register where the kubelet is new.
  void Keep() {
    if (server_ && InodeOf(socket_) != socket_id_) StopServer();
    if (!server_ && !StartServer()) return Tell("serving " + socket_ + ": cannot listen");
    const auto kubelet = IdOf(kubelet_);
    if (!kubelet) {
      registered_.reset();
      return Tell("no kubelet: " + kubelet_ + " is missing");
    }
    if (registered_ == kubelet && StreamIsAlive()) return Tell("");
    registered_.reset();
    const grpc::Status done = Register();
    if (!done.ok()) return Tell("registering at " + kubelet_ + ": " + done.error_message());
    registered_ = kubelet;
    last_stream_ = Steady::now();
    Log(LogLevel::kInfo, "device plug-in registered", {{"resource", options_.resource_name}});
    Tell("");
  }

  bool StreamIsAlive() {
    if (service_->streams() > 0) last_stream_ = Steady::now();
    return Steady::now() - last_stream_ < std::chrono::milliseconds(options_.stream_grace.v);
  }

  bool StartServer() {
    unlink(socket_.c_str());
    service_ = std::make_unique<PluginService>(devices_);
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("bimetal-device-plugin");
    quota.SetMaxThreads(kMaxThreads);
    builder.SetResourceQuota(quota);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    socket_id_ = InodeOf(socket_);
    if (server_ && socket_id_) return true;
    StopServer();
    return false;
  }

  void StopServer() {
    if (service_) service_->Stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_.reset();
    service_.reset();
    registered_.reset();
  }

  grpc::Status Register() {
    // A channel of its own: one that saw the old socket would wait out its backoff.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
        "unix:" + kubelet_, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kRegisterDeadline);
    v1beta1::RegisterRequest request;
    request.set_version("v1beta1");
    request.set_endpoint(options_.socket_name);
    request.set_resource_name(options_.resource_name);
    request.mutable_options();
    v1beta1::Empty reply;
    return stub->Register(&context, request, &reply);
  }

  void Tell(const std::string& error) {
    const std::lock_guard lock(mutex_);
    if (error != status_.last_error && !error.empty()) {
      Log(LogLevel::kWarning, "device plug-in not registered",
          {{"resource", options_.resource_name}, {"reason", error}});
    }
    status_.last_error = error;
    status_.registered = registered_.has_value();
    status_.streams = service_ ? service_->streams() : 0;
  }

  const PluginOptions options_;
  DeviceList devices_;
  const std::string socket_;
  const std::string kubelet_;

  // Of thread_ alone.
  std::unique_ptr<PluginService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<std::pair<dev_t, ino_t>> socket_id_;
  std::optional<FileId> registered_;
  Steady::time_point last_stream_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  PluginStatus status_;    // guarded by mutex_
  std::thread thread_;
};

Result<std::unique_ptr<PluginServer>> PluginServer::Start(PluginOptions options,
                                                          std::vector<PluginDevice> devices,
                                                          bool simulated) {
  const std::string path = options.folder + "/" + options.socket_name;
  if (options.folder.empty() || options.socket_name.empty() || path.size() > kMaxSocketPath) {
    return Fail(ErrorCode::kInvalid, "device plug-in socket " + path + ": not a path of at most " +
                                         std::to_string(kMaxSocketPath) + " bytes");
  }
  const std::size_t slash = options.resource_name.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == options.resource_name.size()) {
    return Fail(ErrorCode::kInvalid,
                "resource name \"" + options.resource_name + "\": must be domain/name");
  }
  return std::unique_ptr<PluginServer>(
      new PluginServer(std::make_unique<Impl>(std::move(options), std::move(devices), simulated)));
}

PluginServer::PluginServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PluginServer::~PluginServer() = default;

void PluginServer::Offer(std::vector<PluginDevice> devices, bool simulated) {
  impl_->Offer(std::move(devices), simulated);
}

PluginStatus PluginServer::status() const { return impl_->status(); }

}  // namespace bimetal::agent
