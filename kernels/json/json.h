#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bimetal::kernels {

// A JSON value as this room needs it: integers only, objects in their order. Immutable.
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  JsonValue() = default;
  explicit JsonValue(bool value) : state_(value) {}
  explicit JsonValue(std::int64_t value) : state_(value) {}
  explicit JsonValue(std::string value) : state_(std::move(value)) {}
  explicit JsonValue(Array value) : state_(std::move(value)) {}
  explicit JsonValue(Object value) : state_(std::move(value)) {}

  // Null where the value is of another kind.
  const bool* AsBool() const { return std::get_if<bool>(&state_); }
  const std::int64_t* AsInteger() const { return std::get_if<std::int64_t>(&state_); }
  const std::string* AsString() const { return std::get_if<std::string>(&state_); }
  const Array* AsArray() const { return std::get_if<Array>(&state_); }
  const Object* AsObject() const { return std::get_if<Object>(&state_); }
  // A member of an object, or null.
  const JsonValue* Find(std::string_view key) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::string, Array, Object> state_;
};

// Reads one JSON text. Refuses what RFC 8259 refuses, and duplicate keys, fractions, exponents,
// integers outside int64 and nesting deeper than 32. On refusal `error` says what and where.
std::optional<JsonValue> ParseJson(std::string_view text, std::string* error);

// Writes one flat JSON object on one line, keys in the order given. Bytes that are no UTF-8 become
// U+FFFD.
class JsonLine {
 public:
  JsonLine& Add(std::string_view key, std::string_view value);
  JsonLine& Add(std::string_view key, const char* value) {
    return Add(key, std::string_view(value));
  }
  JsonLine& Add(std::string_view key, std::uint64_t value);
  JsonLine& Add(std::string_view key, bool value);
  // Nine digits; what is not finite becomes null.
  JsonLine& Add(std::string_view key, double value);
  JsonLine& Add(std::string_view key, const JsonLine& object);
  // With its closing brace, without a newline.
  std::string Text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  JsonLine& AddRaw(std::string_view key, std::string_view raw);
  std::string text_;
};

}  // namespace bimetal::kernels
