#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bimetal::api {

// A YAML or JSON document in memory whose maps keep the order in which they were filled. A plain
// value: copy it freely.
class Document {
 public:
  using List = std::vector<Document>;
  using Map = std::vector<std::pair<std::string, Document>>;

  Document() : value_(Map{}) {}
  explicit Document(bool value) : value_(value) {}
  explicit Document(std::int64_t value) : value_(value) {}
  explicit Document(std::string value) : value_(std::move(value)) {}
  explicit Document(const char* value) : value_(std::string(value)) {}
  explicit Document(List value) : value_(std::move(value)) {}
  explicit Document(Map value) : value_(std::move(value)) {}

  const bool* AsBool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* AsInt() const { return std::get_if<std::int64_t>(&value_); }
  const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  const List* AsList() const { return std::get_if<List>(&value_); }
  const Map* AsMap() const { return std::get_if<Map>(&value_); }

  // Sets a key of a map; an existing value is replaced in its place. REQUIRES: this is a map.
  Document& Set(std::string_view key, Document value);
  Document& Set(std::string_view key, std::string_view value);
  Document& Set(std::string_view key, const char* value) {
    return Set(key, std::string_view(value));
  }
  Document& Set(std::string_view key, std::int64_t value) { return Set(key, Document(value)); }
  Document& SetTrue(std::string_view key) { return Set(key, Document(true)); }
  // The value of a key, or null. REQUIRES: this is a map.
  const Document* Find(std::string_view key) const;

 private:
  std::variant<bool, std::int64_t, std::string, List, Map> value_;
};

// A list of strings.
template <class Strings>
Document ListOf(const Strings& strings) {
  Document::List list;
  for (const auto& text : strings) list.emplace_back(std::string(text));
  return Document(std::move(list));
}

// Reads JSON text without floats and nulls. False where it is anything else.
bool ParseJson(std::string_view text, Document* out);

}  // namespace bimetal::api
