#include "operator/controllers/conditions.h"

namespace bimetal::op {

void SetCondition(google::protobuf::RepeatedPtrField<api::Condition>* conditions,
                  std::string_view type, std::string_view status, std::string_view reason,
                  std::string_view message, std::int64_t generation, TimePoint now) {
  api::Condition* found = nullptr;
  for (auto& condition : *conditions) {
    if (condition.type() == type) found = &condition;
  }
  if (found == nullptr) {
    found = conditions->Add();
    found->set_type(std::string(type));
  }
  if (found->status() != status) {
    found->set_status(std::string(status));
    found->set_last_transition_time(FormatTime(now));
  }
  found->set_reason(std::string(reason));
  found->set_message(Cut(message, 4096));
  found->set_observed_generation(generation);
}

std::string Cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit < 3 ? 0 : limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace bimetal::op
