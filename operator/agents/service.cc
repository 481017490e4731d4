#include "operator/agents/service.h"

#include <grpc/support/log.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "api/agent.grpc.pb.h"
#include "core/base/log.h"
#include "operator/agents/check_report.h"
#include "operator/agents/status.h"

namespace bimetal::op {
namespace {

constexpr char kLeaderKey[] = "bimetal-leader";
constexpr char kBearer[] = "Bearer ";
constexpr int kHandshakeMs = 10'000;
constexpr int kMinPingMs = 20'000;  // agents ping each 30 s
constexpr int kPingMs = 60'000;

// gRPC's own words, as lines of our log.
void LogOfGrpc(gpr_log_func_args* args) {
  const LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kError
                         : args->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                   : LogLevel::kDebug;
  Log(level, "grpc", {{"detail", args->message}});
}

std::string TokenOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return "";
  const std::string_view value(found->second.data(), found->second.size());
  if (!value.starts_with(kBearer)) return "";
  return std::string(value.substr(sizeof(kBearer) - 1));
}

bool IsMetadataValue(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

class Service final : public api::AgentService::Service {
 public:
  Service(Authenticator& authenticator, AgentServerHooks hooks)
      : authenticator_(authenticator), hooks_(std::move(hooks)) {}

  grpc::Status ReportNode(grpc::ServerContext* context, const api::ReportNodeRequest* request,
                          api::ReportNodeReply* reply) override {
    if (const auto leader = hooks_.leader_address()) return NotLeader(context, *leader);
    Result<api::ReportNodeReply> result = Handle(*context, *request);
    if (!result) {
      const grpc::Status status = ToGrpcStatus(result.error());
      Count(ResultLabel(status.error_code()));
      LogRefused(*context, *request, result.error());
      return status;
    }
    if (context->IsCancelled()) {
      Count("canceled");
      return grpc::Status::CANCELLED;
    }
    Count("accepted");
    *reply = *std::move(result);
    return grpc::Status::OK;
  }

 private:
  Result<api::ReportNodeReply> Handle(const grpc::ServerContext& context,
                                      const api::ReportNodeRequest& request) {
    BIMETAL_TRY_ASSIGN(const Identity caller, authenticator_.Authenticate(TokenOf(context)));
    if (request.node_name() != caller.node) {
      return Fail(ErrorCode::kForbidden, "the agent of node " + caller.node +
                                             " cannot report node " +
                                             request.node_name().substr(0, 253));
    }
    BIMETAL_TRY(CheckReport(request));
    return hooks_.report(request);
  }

  grpc::Status NotLeader(grpc::ServerContext* context, const std::string& leader) {
    Count("not_leader");
    if (!IsMetadataValue(leader)) {
      return {grpc::StatusCode::UNAVAILABLE, "this replica does not lead; no leader is known yet"};
    }
    context->AddTrailingMetadata(kLeaderKey, leader);
    return {grpc::StatusCode::UNAVAILABLE, "this replica does not lead; the leader is " + leader};
  }

  void Count(std::string_view result) {
    if (hooks_.count) hooks_.count(result);
  }

  // At debug level only: a broken agent asks again and again, and the counter tells.
  static void LogRefused(const grpc::ServerContext& context, const api::ReportNodeRequest& request,
                         const Error& error) {
    Log(LogLevel::kDebug, "agent's report refused",
        {{"peer", context.peer()},
         {"claimed_node", std::string_view(request.node_name()).substr(0, 253)},
         {"error", error.message}});
  }

  Authenticator& authenticator_;
  AgentServerHooks hooks_;
};

// "host:port" with the port replaced.
std::string WithPort(const std::string& listen, int port) {
  return listen.substr(0, listen.rfind(':') + 1) + std::to_string(port);
}

}  // namespace

struct AgentServer::Impl {
  Impl(AgentServerOptions o, Authenticator& authenticator, AgentServerHooks hooks)
      : options(std::move(o)), service(authenticator, std::move(hooks)) {}

  // A server that listens, on the port of the earlier one where there was one.
  Result<std::unique_ptr<grpc::Server>> Listen(const KeyPair& identity) {
    if (const auto checked = CheckKeyPair(identity); !checked) {
      return tl::unexpected<Error>(WithContext(checked.error(), "identity of the agent service"));
    }
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    tls.pem_key_cert_pairs.push_back({identity.key_pem, identity.cert_pem});
    grpc::ServerBuilder builder;
    int chosen = 0;
    const std::string address = port == 0 ? options.listen : WithPort(options.listen, port);
    builder.AddListeningPort(address, grpc::SslServerCredentials(tls), &chosen);
    builder.RegisterService(&service);
    builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
    builder.SetResourceQuota(grpc::ResourceQuota("agents").SetMaxThreads(options.max_threads));
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
    // SetIdentity needs two servers on one port for a moment.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 1);
    auto made = builder.BuildAndStart();
    if (!made || chosen == 0) {
      return Fail(ErrorCode::kUnavailable, "cannot listen on " + address);
    }
    port = chosen;
    return made;
  }

  void Shut(std::unique_ptr<grpc::Server> old) const {
    if (!old) return;
    if (auto* health = old->GetHealthCheckService()) health->Shutdown();
    old->Shutdown(std::chrono::system_clock::now() +
                  std::chrono::milliseconds(options.shutdown_grace.v));
    old->Wait();
  }

  AgentServerOptions options;
  Service service;
  std::mutex mutex;  // guards server and stopped
  int port = 0;      // set once, before Start returns
  std::unique_ptr<grpc::Server> server;
  bool stopped = false;
};

AgentServer::AgentServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AgentServer::~AgentServer() { Stop(); }

Result<std::unique_ptr<AgentServer>> AgentServer::Start(AgentServerOptions options,
                                                        Authenticator& authenticator,
                                                        AgentServerHooks hooks) {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(LogOfGrpc);
    grpc::EnableDefaultHealthCheckService(true);
  });
  if (!hooks.report || !hooks.leader_address) {
    return Fail(ErrorCode::kInvalid, "the agent service needs its hooks");
  }
  auto impl = std::make_unique<Impl>(std::move(options), authenticator, std::move(hooks));
  BIMETAL_TRY_ASSIGN(impl->server, impl->Listen(impl->options.identity));
  impl->options.identity = {};
  return std::unique_ptr<AgentServer>(new AgentServer(std::move(impl)));
}

int AgentServer::port() const { return impl_->port; }

Status AgentServer::SetIdentity(KeyPair identity) {
  std::unique_ptr<grpc::Server> old;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopped) return Fail(ErrorCode::kUnavailable, "the agent service has stopped");
    BIMETAL_TRY_ASSIGN(auto fresh, impl_->Listen(identity));
    old = std::exchange(impl_->server, std::move(fresh));
  }
  impl_->Shut(std::move(old));
  return {};
}

void AgentServer::Stop() {
  std::unique_ptr<grpc::Server> old;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    old = std::move(impl_->server);
  }
  impl_->Shut(std::move(old));
}

}  // namespace bimetal::op
