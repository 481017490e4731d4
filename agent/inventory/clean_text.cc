#include "agent/inventory/clean_text.h"

#include <algorithm>

namespace bimetal::agent {
namespace {

// Length of the valid UTF-8 sequence at the start of `text`, 0 where there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool too_high = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_high ? 0 : length;
}

}  // namespace

std::string CleanText(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const bool good = length > 1 || (length == 1 && text[0] >= 0x20 && text[0] != 0x7F);
    const std::string_view piece = good ? text.substr(0, length) : std::string_view("?");
    if (out.size() + piece.size() > limit) break;
    out += piece;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string CleanToken(std::string_view text, std::size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out) {
    if (c <= ' ' || c >= 0x7F) c = '-';
  }
  return out;
}

}  // namespace bimetal::agent
