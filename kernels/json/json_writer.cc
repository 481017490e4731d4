#include <array>
#include <cmath>
#include <cstdio>

#include "kernels/json/json.h"

namespace bimetal::kernels {
namespace {

// Length of the valid UTF-8 sequence at the start of `text`, or 0.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) length = 2;
  if (lead >= 0xe0 && lead <= 0xef) length = 3;
  if (lead >= 0xf0 && lead <= 0xf4) length = 4;
  if (lead == 0xe0) low = 0xa0;   // overlong
  if (lead == 0xed) high = 0x9f;  // surrogates
  if (lead == 0xf0) low = 0x90;   // overlong
  if (lead == 0xf4) high = 0x8f;  // above U+10FFFF
  if (length == 0 || text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = SequenceLength(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", c);
      out += escape.data();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

}  // namespace

JsonLine& JsonLine::AddRaw(std::string_view key, std::string_view raw) {
  text_ += text_.empty() ? "{" : ",";
  text_ += Quoted(key) + ":" + std::string(raw);
  return *this;
}

JsonLine& JsonLine::Add(std::string_view key, std::string_view value) {
  return AddRaw(key, Quoted(value));
}

JsonLine& JsonLine::Add(std::string_view key, std::uint64_t value) {
  return AddRaw(key, std::to_string(value));
}

JsonLine& JsonLine::Add(std::string_view key, bool value) {
  return AddRaw(key, value ? "true" : "false");
}

JsonLine& JsonLine::Add(std::string_view key, double value) {
  if (!std::isfinite(value)) return AddRaw(key, "null");
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return AddRaw(key, text.data());
}

JsonLine& JsonLine::Add(std::string_view key, const JsonLine& object) {
  return AddRaw(key, object.Text());
}

}  // namespace bimetal::kernels
