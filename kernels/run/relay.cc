// What a supervising process does with what its worker says.
#include <string>
#include <utility>

#include "kernels/json/json.h"
#include "kernels/run/board.h"

namespace bimetal::kernels {
namespace {

std::string TextOf(const JsonValue& value, std::string_view key) {
  const JsonValue* member = value.Find(key);
  return member == nullptr || member->AsString() == nullptr ? "" : *member->AsString();
}

}  // namespace

bool Board::IsDone(const std::string& line) { return line.starts_with("{\"type\":\"done\""); }

// Events are told before the lines that they are about, so no line needs to be read.
void Board::Relay(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (IsDone(line)) return;
  if (!line.starts_with("{\"event\":")) {
    Say(line);
    return;
  }
  std::string error;
  if (const auto event = ParseJson(line, &error)) RelayEvent(*event);
}

void Board::RelayEvent(const JsonValue& event) {
  const std::string kind = TextOf(event, "event");
  const std::string device = TextOf(event, "device");
  const std::string check = TextOf(event, "check");
  if (kind == "announced") {
    announced_ = true;
    backend_ = TextOf(event, "backend");
  } else if (kind == "owed" && FindCheck(check) != nullptr) {
    owed_.emplace(device, check);
  } else if (kind == "begin") {
    steps_[device] = check;
  } else if (kind == "given" && owed_.erase({device, check}) > 0) {
    Count(TextOf(event, "verdict"));
  }
}

std::string Board::LastStep(const std::string& device) {
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(device);
  return found == steps_.end() ? "" : found->second;
}

}  // namespace bimetal::kernels
