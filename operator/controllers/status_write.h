#pragma once

#include <string>
#include <string_view>

#include "core/base/log.h"
#include "kube/client/client.h"
#include "kube/codec/codec.h"
#include "operator/writer/writer.h"

namespace bimetal::op {

// The write that replaces the status of `object` by the one it carries. `done` is the caller's.
template <class T>
Write StatusWrite(const T& object) {
  Write write{"patch",
              kube::InfoOf<T>().plural + "/status",
              object.metadata().namespace_(),
              object.metadata().name(),
              kube::ToJson(object.status()),
              {},
              {}};
  write.run = [object](kube::Client& client) { return client.ReplaceStatus(object); };
  return write;
}

// Takes in how the write of the status `sent` ended, for a record with `object`, `written`,
// `write_in_flight` and `last_write`. False where it has to be tried again; that the object is gone
// is no failure. `kind` is for the log: "job". Loop thread only.
template <class Record, class ObjectStatus>
bool SettleStatusWrite(Record& record, const ObjectStatus& sent, const Status& result,
                       std::string_view kind) {
  record.write_in_flight = false;
  if (result) {
    record.written = sent;
    return true;
  }
  if (result.error().code == ErrorCode::kNotFound) return true;
  Log(LogLevel::kWarning, std::string(kind) + " status could not be written",
      {{std::string(kind), record.object.metadata().name()}, {"error", result.error().message}});
  record.last_write.reset();
  return false;
}

}  // namespace bimetal::op
