#include "agent/report/channel.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

namespace bimetal::agent {
namespace {

constexpr std::size_t kMaxSmallFile = 1024UL * 1024UL;
constexpr int kMaxReplyBytes = 4 * 1024 * 1024;

}  // namespace

Result<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Fail(ErrorCode::kUnavailable, path + ": cannot be opened");
  std::string text(kMaxSmallFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return Fail(ErrorCode::kUnavailable, path + ": cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.empty()) return Fail(ErrorCode::kData, path + ": is empty");
  if (text.size() > kMaxSmallFile) return Fail(ErrorCode::kData, path + ": larger than 1 MiB");
  return text;
}

Result<std::string> ReadToken(const std::string& path) {
  BIMETAL_TRY_ASSIGN(std::string text, ReadSmallFile(path));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  // gRPC ends the process where a header holds anything else.
  const bool legal =
      !text.empty() && text.size() <= 16384 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!legal) return Fail(ErrorCode::kData, path + ": holds no token");
  return text;
}

bool IsHostPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (text.size() > 300 || colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string_view inner = bracketed ? host.substr(1, host.size() - 2) : host;
  const bool legal = std::all_of(inner.begin(), inner.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || (bracketed && c == ':');
  });
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  return legal && error == std::errc() && stop == end && port >= 1 && port <= 65535;
}

std::string HostOf(const std::string& host_port) {
  std::string host = host_port.substr(0, host_port.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

api::AgentService::StubInterface& OperatorChannel::To(const std::string& target,
                                                      const std::string& ca_pem) {
  if (stub_ && target == target_ && ca_pem == ca_pem_) return *stub_;
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ca_pem;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(name_);
  // A channel that is made anew after a failure must not inherit another one's backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  stub_ = api::AgentService::NewStub(
      grpc::CreateCustomChannel("dns:///" + target, grpc::SslCredentials(tls), arguments));
  target_ = target;
  ca_pem_ = ca_pem;
  return *stub_;
}

void OperatorChannel::Drop() { stub_.reset(); }

}  // namespace bimetal::agent
