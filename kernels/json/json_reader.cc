#include <algorithm>
#include <charconv>

#include "kernels/json/json.h"

namespace bimetal::kernels {
namespace {

constexpr int kMaxDepth = 32;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<JsonValue> Document(std::string* error) {
    std::optional<JsonValue> value = Value(0);
    if (value) {
      SkipSpace();
      if (at_ != text_.size()) value = Refuse("text after the value");
    }
    if (!value) *error = error_;
    return value;
  }

 private:
  std::nullopt_t Refuse(const std::string& what) {
    if (error_.empty()) {
      const std::string_view before = text_.substr(0, at_);
      const auto line = std::count(before.begin(), before.end(), '\n') + 1;
      const std::size_t column = at_ - (before.rfind('\n') + 1) + 1;
      error_ = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what;
    }
    return std::nullopt;
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::optional<JsonValue> Value(int depth) {
    if (depth > kMaxDepth) return Refuse("nested too deeply");
    SkipSpace();
    if (at_ >= text_.size()) return Refuse("text ends where a value is expected");
    if (Take('{')) return ObjectValue(depth);
    if (Take('[')) return ArrayValue(depth);
    if (Take('"')) {
      std::optional<std::string> text = StringBody();
      if (!text) return std::nullopt;
      return JsonValue(std::move(*text));
    }
    if (TakeWord("true")) return JsonValue(true);
    if (TakeWord("false")) return JsonValue(false);
    if (TakeWord("null")) return JsonValue();
    return Number();
  }

  std::optional<JsonValue> Number() {
    const std::size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    const std::size_t digits = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == digits) return Refuse("no JSON value begins here");
    if (text_[digits] == '0' && at_ - digits > 1) return Refuse("number with a leading zero");
    if (at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != text_.npos) {
      return Refuse("number is no integer");
    }
    std::int64_t value = 0;
    const auto end = std::from_chars(text_.data() + start, text_.data() + at_, value);
    if (end.ec != std::errc()) return Refuse("integer out of range");
    return JsonValue(value);
  }

  std::optional<JsonValue> ArrayValue(int depth) {
    JsonValue::Array items;
    SkipSpace();
    if (Take(']')) return JsonValue(std::move(items));
    for (;;) {
      std::optional<JsonValue> item = Value(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
      SkipSpace();
      if (Take(']')) return JsonValue(std::move(items));
      if (!Take(',')) return Refuse("expected ',' or ']'");
    }
  }

  std::optional<JsonValue> ObjectValue(int depth) {
    JsonValue::Object members;
    SkipSpace();
    if (Take('}')) return JsonValue(std::move(members));
    for (;;) {
      SkipSpace();
      if (!Take('"')) return Refuse("expected a key");
      std::optional<std::string> key = StringBody();
      if (!key) return std::nullopt;
      for (const auto& [known, value] : members) {
        if (known == *key) return Refuse("duplicate key \"" + *key + "\"");
      }
      SkipSpace();
      if (!Take(':')) return Refuse("expected ':'");
      std::optional<JsonValue> value = Value(depth + 1);
      if (!value) return std::nullopt;
      members.emplace_back(std::move(*key), std::move(*value));
      SkipSpace();
      if (Take('}')) return JsonValue(std::move(members));
      if (!Take(',')) return Refuse("expected ',' or '}'");
    }
  }

  std::optional<std::string> StringBody() {
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (static_cast<unsigned char>(c) < 0x20) return Refuse("control character in a string");
      ++at_;
      if (c != '\\') {
        out += c;
      } else if (!Escape(&out)) {
        return std::nullopt;
      }
    }
    return Refuse("string without an end");
  }

  bool Escape(std::string* out) {
    if (at_ >= text_.size()) return Refuse("string without an end"), false;
    const char c = text_[at_++];
    static constexpr std::string_view kFrom = "\"\\/bfnrt";
    static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (const auto i = kFrom.find(c); i != kFrom.npos) return out->push_back(kTo[i]), true;
    std::uint32_t code = 0;
    if (c != 'u' || !HexUnit(&code)) return Refuse("unknown escape"), false;
    if (code >= 0xd800 && code < 0xdc00) {
      std::uint32_t low = 0;
      if (!TakeWord("\\u") || !HexUnit(&low) || low < 0xdc00 || low > 0xdfff) {
        return Refuse("half a surrogate pair"), false;
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return Refuse("half a surrogate pair"), false;
    }
    AppendUtf8(code, out);
    return true;
  }

  bool HexUnit(std::uint32_t* code) {
    if (at_ + 4 > text_.size()) return false;
    const auto end = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, *code, 16);
    if (end.ptr != text_.data() + at_ + 4) return false;
    at_ += 4;
    return true;
  }

  static void AppendUtf8(std::uint32_t code, std::string* out) {
    const auto put = [out](std::uint32_t byte) { out->push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
    } else {
      put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  const Object* members = AsObject();
  if (members == nullptr) return nullptr;
  for (const auto& [name, value] : *members) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::optional<JsonValue> ParseJson(std::string_view text, std::string* error) {
  return Reader(text).Document(error);
}

}  // namespace bimetal::kernels
