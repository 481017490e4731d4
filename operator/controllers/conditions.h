#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/repeated_field.h>

#include "api/meta.pb.h"
#include "core/base/time.h"

namespace bimetal::op {

// Sets the condition of this type; its transition time moves only when the status does.
void SetCondition(google::protobuf::RepeatedPtrField<api::Condition>* conditions,
                  std::string_view type, std::string_view status, std::string_view reason,
                  std::string_view message, std::int64_t generation, TimePoint now);

// `text` cut to `limit` bytes, never inside a UTF-8 character, with "..." where it was cut.
std::string Cut(std::string_view text, std::size_t limit);

}  // namespace bimetal::op
