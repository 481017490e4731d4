#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>

#include "api/agent.grpc.pb.h"
#include "core/base/result.h"

namespace bimetal::agent {

// The text of a small file. Errors: kUnavailable where it cannot be read, kData where it is empty
// or larger than 1 MiB; both name the file, never its content.
Result<std::string> ReadSmallFile(const std::string& path);

// The token of a file, fit for a header. Error kData also where it holds other than printable text.
Result<std::string> ReadToken(const std::string& path);

// "host:port" of one host, as a standby tells it.
bool IsHostPort(std::string_view text);
// The host of "host:port", without the brackets of an IPv6 address.
std::string HostOf(const std::string& host_port);

// One TLS connection to an operator, made anew where target or CA changed. One owner thread.
class OperatorChannel {
 public:
  explicit OperatorChannel(std::string tls_server_name) : name_(std::move(tls_server_name)) {}

  // The service at `target`, whose certificate must be for the TLS name and signed by `ca_pem`.
  api::AgentService::StubInterface& To(const std::string& target, const std::string& ca_pem);

  // Forgets the connection, so that the next call makes a new one at once.
  void Drop();

 private:
  const std::string name_;
  std::string target_;
  std::string ca_pem_;
  std::unique_ptr<api::AgentService::Stub> stub_;
};

}  // namespace bimetal::agent
