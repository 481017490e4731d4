#include "core/queue/json.h"

#include <charconv>

namespace bimetal::core::queue {
namespace {

constexpr int kMostNesting = 32;

void AppendUtf8(std::uint32_t code, std::string* out) {
  const auto byte = [out](std::uint32_t value) { out->push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0U | code >> 6U);
  } else {
    byte(0xE0U | code >> 12U);
    byte(0x80U | (code >> 6U & 0x3FU));
  }
  byte(0x80U | (code & 0x3FU));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Json> Parse() {
    BIMETAL_TRY_ASSIGN(Json value, Value(0));
    SkipSpace();
    if (at_ != text_.size()) return Wrong("nothing more");
    return value;
  }

 private:
  tl::unexpected<Error> Wrong(std::string_view expected) const {
    return Fail(ErrorCode::kData,
                "byte " + std::to_string(at_) + ": expected " + std::string(expected));
  }
  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool Take(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Result<Json> Value(int depth) {
    if (depth > kMostNesting) return Wrong("fewer levels");
    Json value;
    if (Take("null")) return value;
    if (Take("true") || Take("false")) {
      value.type = Json::Type::kBool;
      value.boolean = text_[at_ - 2] == 'u';  // tr-u-e
      return value;
    }
    if (Take("\"")) {
      value.type = Json::Type::kString;
      BIMETAL_TRY_ASSIGN(value.string, String());
      return value;
    }
    if (Take("[")) return Array(depth);
    if (Take("{")) return Object(depth);
    return Integer();
  }

  Result<Json> Integer() {
    Json value;
    value.type = Json::Type::kInteger;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value.integer);
    if (error != std::errc{}) return Wrong("a value");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  Result<Json> Array(int depth) {
    Json value;
    value.type = Json::Type::kArray;
    if (Take("]")) return value;
    for (;;) {
      BIMETAL_TRY_ASSIGN(Json item, Value(depth + 1));
      value.items.push_back(std::move(item));
      if (Take("]")) return value;
      if (!Take(",")) return Wrong("',' or ']'");
    }
  }

  Result<Json> Object(int depth) {
    Json value;
    value.type = Json::Type::kObject;
    if (Take("}")) return value;
    for (;;) {
      if (!Take("\"")) return Wrong("a name in quotes");
      BIMETAL_TRY_ASSIGN(std::string name, String());
      if (!Take(":")) return Wrong("':'");
      BIMETAL_TRY_ASSIGN(Json member, Value(depth + 1));
      value.members.push_back({std::move(name), std::move(member)});
      if (Take("}")) return value;
      if (!Take(",")) return Wrong("',' or '}'");
    }
  }

  // After the opening quote.
  Result<std::string> String() {
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      if (at_ == text_.size()) break;
      const char escape = text_[at_++];
      constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      if (const auto known = kEscapes.find(escape); known != std::string_view::npos) {
        out.push_back(kMeant[known]);
        continue;
      }
      std::uint32_t code = 0;
      const char* begin = text_.data() + at_;
      if (escape != 'u' || text_.size() - at_ < 4 ||
          std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4) {
        return Wrong("an escape");
      }
      at_ += 4;
      AppendUtf8(code, &out);
    }
    if (at_ == text_.size()) return Wrong("'\"'");
    ++at_;
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void Append(const Json& json, std::string* out) {
  switch (json.type) {
    case Json::Type::kNull:
      *out += "null";
      return;
    case Json::Type::kBool:
      *out += json.boolean ? "true" : "false";
      return;
    case Json::Type::kInteger:
      *out += std::to_string(json.integer);
      return;
    case Json::Type::kString:
      AppendQuoted(json.string, out);
      return;
    case Json::Type::kArray:
      *out += '[';
      for (const Json& item : json.items) {
        if (&item != &json.items.front()) *out += ',';
        Append(item, out);
      }
      *out += ']';
      return;
    case Json::Type::kObject:
      *out += '{';
      for (const auto& member : json.members) {
        if (&member != &json.members.front()) *out += ',';
        AppendQuoted(member.name, out);
        *out += ':';
        Append(member.value, out);
      }
      *out += '}';
      return;
  }
}

}  // namespace

const Json* Json::Find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<Json> ParseJson(std::string_view text) { return Parser(text).Parse(); }

std::string WriteJson(const Json& json) {
  std::string out;
  Append(json, &out);
  return out;
}

void AppendQuoted(std::string_view text, std::string* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      *out += "\\u00";
      out->push_back(kHex[byte >> 4U]);
      out->push_back(kHex[byte & 0xFU]);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

}  // namespace bimetal::core::queue
