#include "core/model/check.h"

#include <algorithm>

namespace bimetal::core {
namespace {

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

std::string At(const std::string& list, int index) {
  return list + "[" + std::to_string(index) + "]";
}

std::string Quoted(std::string_view text, std::size_t max) {
  if (text.size() <= max) return "\"" + std::string(text) + "\"";
  while (max > 0 && (static_cast<unsigned char>(text[max]) & 0xC0U) == 0x80U) --max;
  return "\"" + std::string(text.substr(0, max)) + "...\"";
}

tl::unexpected<Error> FieldError(const std::string& field, std::string_view problem) {
  return Fail(ErrorCode::kInvalid, field + ": " + std::string(problem));
}

Status CheckRange(const std::string& field, std::int64_t value, std::int64_t min, std::int64_t max,
                  std::string_view remedy) {
  if (value >= min && value <= max) return {};
  const std::string bound = value < min ? " is under " + std::to_string(min) + "; "
                                        : " is over " + std::to_string(max) + "; ";
  return FieldError(field, std::to_string(value) + bound + std::string(remedy));
}

Status CheckLabelName(const std::string& field, std::string_view name, std::size_t max_length) {
  if (name.empty()) return FieldError(field, "is empty; give it a name");
  if (name.size() > max_length) {
    return FieldError(field, Quoted(name) + " is longer than " + std::to_string(max_length) +
                                 " characters; use a shorter name");
  }
  const bool legal =
      std::all_of(name.begin(), name.end(), [](char c) { return IsAlphanumeric(c) || c == '-'; }) &&
      IsAlphanumeric(name.front()) && IsAlphanumeric(name.back());
  if (legal) return {};
  return FieldError(field, Quoted(name) +
                               " is no name; use lower-case letters, digits and '-', with a letter "
                               "or digit at both ends");
}

Status CheckText(const std::string& field, std::string_view text, std::size_t max_length) {
  if (text.empty()) return FieldError(field, "is empty; set it");
  if (text.size() <= max_length) return {};
  return FieldError(field, Quoted(text) + " is longer than " + std::to_string(max_length) +
                               " characters; use a shorter one");
}

Status CheckCount(const std::string& field, int count, int min, int max) {
  if (count < min) return FieldError(field, "needs at least " + std::to_string(min) + "; add one");
  if (count <= max) return {};
  return FieldError(
      field, std::to_string(count) + " entries are over " + std::to_string(max) + "; use fewer");
}

Status CheckUnique(const std::string& field, const std::string& name, std::set<std::string>& seen) {
  if (seen.insert(name).second) return {};
  return FieldError(field, Quoted(name) + " is there twice; give each its own");
}

}  // namespace bimetal::core
