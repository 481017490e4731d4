#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/agent.pb.h"
#include "tests/integration/agent/support.h"

namespace bimetal::agent {

// What a fake operator answers.
struct FakeAnswer {
  int code = 0;  // a grpc::StatusCode; 0: OK
  std::string message;
  std::string leader;  // trailing metadata "bimetal-leader", where not empty
  api::ReportNodeReply reply;
};

// A call as it came.
struct FakeCall {
  std::string authorization;  // the whole header
  api::ReportNodeRequest request;
};

// The operator's side of the agent protocol on 127.0.0.1, over TLS. Thread-safe.
class FakeOperator {
 public:
  using Answer = std::function<FakeAnswer(const FakeCall&)>;

  // Serves when it returns. `port` 0: any free one.
  FakeOperator(const Certificates& certificates, Answer answer, int port = 0);
  ~FakeOperator();
  FakeOperator(const FakeOperator&) = delete;
  FakeOperator& operator=(const FakeOperator&) = delete;

  int port() const;
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }

  std::vector<FakeCall> calls() const;
  // Waits until `n` calls came in all; false where they do not within 30 s.
  bool WaitForCalls(std::size_t n) const;
  // Waits until a call that came after this one began fulfils `condition`.
  bool WaitForCall(const std::function<bool(const FakeCall&)>& condition) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
