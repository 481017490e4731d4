#include "tests/integration/agent/fake_operator.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "api/agent.grpc.pb.h"
#include "core/base/result.h"

namespace bimetal::agent {
namespace {

constexpr std::chrono::seconds kPatience{30};

}  // namespace

class FakeOperator::Impl final : public api::AgentService::Service {
 public:
  Impl(const Certificates& certificates, Answer answer, int port) : answer_(std::move(answer)) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({certificates.server_key_pem, certificates.server_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::SslServerCredentials(tls),
                             &port_);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    BIMETAL_CHECK(server_ != nullptr);
  }
  ~Impl() override {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  }

  grpc::Status ReportNode(grpc::ServerContext* context, const api::ReportNodeRequest* request,
                          api::ReportNodeReply* reply) override {
    FakeCall call;
    const auto header = context->client_metadata().find("authorization");
    if (header != context->client_metadata().end()) {
      call.authorization.assign(header->second.data(), header->second.size());
    }
    call.request = *request;
    FakeAnswer answer = answer_(call);
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
      changed_.notify_all();
    }
    if (!answer.leader.empty()) context->AddTrailingMetadata("bimetal-leader", answer.leader);
    if (answer.code != 0) return {static_cast<grpc::StatusCode>(answer.code), answer.message};
    *reply = std::move(answer.reply);
    return grpc::Status::OK;
  }

  int port() const { return port_; }

  std::vector<FakeCall> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  bool Wait(const std::function<bool(const std::vector<FakeCall>&)>& condition) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return condition(calls_); });
  }

 private:
  const Answer answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<FakeCall> calls_;  // guarded by mutex_
};

FakeOperator::FakeOperator(const Certificates& certificates, Answer answer, int port)
    : impl_(std::make_unique<Impl>(certificates, std::move(answer), port)) {}
FakeOperator::~FakeOperator() = default;

int FakeOperator::port() const { return impl_->port(); }

std::vector<FakeCall> FakeOperator::calls() const { return impl_->calls(); }

bool FakeOperator::WaitForCalls(std::size_t n) const {
  return impl_->Wait([&](const auto& calls) { return calls.size() >= n; });
}

bool FakeOperator::WaitForCall(const std::function<bool(const FakeCall&)>& condition) const {
  const std::size_t before = calls().size();
  return impl_->Wait([&](const auto& calls) {
    return std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end(), condition);
  });
}

}  // namespace bimetal::agent
