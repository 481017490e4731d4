#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace bimetal::core::queue {

// A JSON value of a recorded cycle: no fractions, because a cycle has none.
struct Json {
  enum class Type { kNull, kBool, kInteger, kString, kArray, kObject };
  Type type = Type::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  std::string string;
  std::vector<Json> items;
  struct Member;
  std::vector<Member> members;

  // The member of this name; nullptr where there is none.
  const Json* Find(std::string_view name) const;
};

// Not a pair: clang does not take one of a type that is not complete yet.
struct Json::Member {
  std::string name;
  Json value;
};

// Error kData where `text` is no such value, is nested deeper than 32, or has more after it; it
// names the byte. Pure; safe with any bytes.
Result<Json> ParseJson(std::string_view text);

// The text that ParseJson reads as `json`, without white space.
std::string WriteJson(const Json& json);

// `text` in quotes, what must be escaped escaped.
void AppendQuoted(std::string_view text, std::string* out);

}  // namespace bimetal::core::queue
