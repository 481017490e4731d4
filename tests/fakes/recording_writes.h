#pragma once

#include <string>
#include <utility>
#include <vector>

#include "operator/writer/writer.h"

namespace bimetal::test {

// Takes writes without sending them; the test says how each one ended.
class RecordingWrites final : public op::WriteSink {
 public:
  void Submit(op::Write write) override { writes.push_back(std::move(write)); }
  std::size_t Depth() const override { return depth; }

  // Those of this verb and resource, oldest first.
  std::vector<op::Write> Of(const std::string& verb, const std::string& resource) const {
    std::vector<op::Write> out;
    for (const auto& write : writes) {
      if (write.verb == verb && write.resource == resource) out.push_back(write);
    }
    return out;
  }

  // Ends every write taken so far, those that the endings cause included.
  void EndAll(const Status& status = {}) {
    while (ended_ < writes.size()) {
      const auto done = writes[ended_++].done;
      if (done) done(status);
    }
  }

  std::vector<op::Write> writes;
  std::size_t depth = 0;  // as many seem to wait

 private:
  std::size_t ended_ = 0;
};

}  // namespace bimetal::test
