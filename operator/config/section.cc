#include "operator/config/section.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace bimetal::op {
namespace {

constexpr std::size_t kShown = 80;

std::string Join(const std::vector<std::string_view>& names) {
  std::string out;
  for (const auto name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

}  // namespace

std::string Quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value.substr(0, kShown)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  if (value.size() > kShown) out += "...";
  return out + "\"";
}

Section::Section(YAML::Node node, std::string path, std::optional<Error>* error)
    : node_(std::move(node)), path_(std::move(path)), error_(error) {
  if (!node_.IsDefined() || node_.IsNull()) return;
  if (!node_.IsMap()) {
    Reject("is not a mapping");
    return;
  }
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) {
      Reject("has a key that is not a text");
    } else if (!seen.insert(entry.first.Scalar()).second) {
      Fail(entry.first.Scalar(), "is given twice");
    }
  }
}

void Section::Read(const char* key, bool* out) {
  const auto text = TakeText(key);
  if (!text) return;
  if (*text == "true") {
    *out = true;
  } else if (*text == "false") {
    *out = false;
  } else {
    Fail(key, Quoted(*text) + " is neither true nor false");
  }
}

void Section::Read(const char* key, std::string* out, const Check& check) {
  auto text = TakeText(key);
  if (!text) return;
  if (const auto wrong = check(*text)) {
    Fail(key, Quoted(*text) + " " + *wrong);
    return;
  }
  *out = *std::move(text);
}

void Section::Read(const char* key, Millis* out, Millis min, Millis max) {
  const auto text = TakeText(key);
  if (!text) return;
  const auto parsed = ParseDuration(*text);
  if (!parsed) {
    Fail(key, Quoted(*text) + " is not a duration such as 30s or 1m30s");
  } else if (*parsed < min || *parsed > max) {
    Fail(key,
         Quoted(*text) + " is not between " + FormatDuration(min) + " and " + FormatDuration(max));
  } else {
    *out = *parsed;
  }
}

void Section::Read(const char* key, int* out, int min, int max) {
  const auto text = TakeText(key);
  if (!text) return;
  int number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, problem] = std::from_chars(text->data(), end, number);
  if (problem != std::errc() || stop != end || number < min || number > max) {
    Fail(key, Quoted(*text) + " is not a number from " + std::to_string(min) + " to " +
                  std::to_string(max));
    return;
  }
  *out = number;
}

std::optional<std::size_t> Section::ReadChoice(const char* key,
                                               const std::vector<std::string_view>& names) {
  const auto text = TakeText(key);
  if (!text) return std::nullopt;
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found == names.end()) {
    Fail(key, Quoted(*text) + " is none of " + Join(names));
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - names.begin());
}

void Section::ReadSection(const char* key, const std::function<void(Section&)>& read) {
  const auto node = Take(key);
  if (!node) return;
  Section section(*node, PathOf(key), error_);
  read(section);
  section.Finish();
}

void Section::ReadList(const char* key, std::size_t max,
                       const std::function<void(Section&)>& read) {
  const auto node = Take(key);
  if (!node) return;
  if (!node->IsSequence()) {
    Fail(key, "is not a list");
    return;
  }
  if (node->size() > max) {
    Fail(key, "has more than " + std::to_string(max) + " entries");
    return;
  }
  for (std::size_t i = 0; i < node->size(); ++i) {
    Section section((*node)[i], PathOf(key) + "[" + std::to_string(i) + "]", error_);
    read(section);
    section.Finish();
  }
}

void Section::Reject(const std::string& message) {
  if (*error_) return;
  *error_ = Error{ErrorCode::kInvalid, (path_.empty() ? "the document" : path_) +
                                           (message.starts_with("is ") ? " " : ": ") + message};
}

void Section::Finish() {
  if (!node_.IsDefined() || !node_.IsMap()) return;
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && !taken_.contains(entry.first.Scalar())) {
      Fail(entry.first.Scalar(), "is not a known key");
    }
  }
}

std::optional<YAML::Node> Section::Take(const char* key) {
  taken_.insert(key);
  if (!node_.IsDefined() || !node_.IsMap()) return std::nullopt;
  const YAML::Node value = node_[key];
  if (!value.IsDefined() || value.IsNull()) return std::nullopt;
  return value;
}

std::optional<std::string> Section::TakeText(const char* key) {
  const auto node = Take(key);
  if (!node) return std::nullopt;
  if (!node->IsScalar()) {
    Fail(key, "is not a single value");
    return std::nullopt;
  }
  return node->Scalar();
}

std::string Section::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Section::Fail(std::string_view key, const std::string& message) {
  if (*error_) return;
  const bool shown = key.size() <= kShown;
  *error_ =
      Error{ErrorCode::kInvalid, PathOf(shown ? key : key.substr(0, kShown)) + ": " + message};
}

}  // namespace bimetal::op
