#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "core/base/result.h"

// Checks of single fields, worded alike: "field: what is wrong; what to do".
namespace bimetal::core {

// "spec.roles" and 2 -> "spec.roles[2]".
std::string At(const std::string& list, int index);

tl::unexpected<Error> FieldError(const std::string& field, std::string_view problem);

// Error kInvalid outside [min, max]; `remedy` says what to do.
Status CheckRange(const std::string& field, std::int64_t value, std::int64_t min, std::int64_t max,
                  std::string_view remedy);

// Lower-case letters, digits and '-', a letter or digit at both ends, at most `max_length`.
Status CheckLabelName(const std::string& field, std::string_view name, std::size_t max_length);

// A text of 1 to `max_length` bytes.
Status CheckText(const std::string& field, std::string_view text, std::size_t max_length);

// At most `max` entries.
Status CheckCount(const std::string& field, int count, int min, int max);

// Error where `name` is in `seen` already; adds it.
Status CheckUnique(const std::string& field, const std::string& name, std::set<std::string>& seen);

// The first `max` bytes of `text` in quotes, for messages.
std::string Quoted(std::string_view text, std::size_t max = 64);

}  // namespace bimetal::core
