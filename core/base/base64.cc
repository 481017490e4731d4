#include "core/base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace bimetal {
namespace {

constexpr std::string_view kStandard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Encode(std::string_view bytes, std::string_view alphabet, bool padded) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if (k <= n) {
        out += alphabet[group >> (18 - 6 * k) & 63];
      } else if (padded) {
        out += '=';
      }
    }
  }
  return out;
}

// `text` without padding. Bits beyond the last byte must be 0, so that each value has one text.
Result<std::string> Decode(std::string_view text, std::string_view alphabet) {
  std::array<std::int8_t, 256> value;
  value.fill(-1);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    value[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int v = value[static_cast<unsigned char>(c)];
    if (v < 0) return Fail(ErrorCode::kInvalid, "base64 text has a character that is not allowed");
    bits = (bits << 6 | static_cast<std::uint32_t>(v)) & 0xffffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xff);
    }
  }
  if (text.size() % 4 == 1 || (bits & ((1u << count) - 1)) != 0) {
    return Fail(ErrorCode::kInvalid, "base64 text is cut off");
  }
  return out;
}

}  // namespace

std::string Base64Encode(std::string_view bytes) { return Encode(bytes, kStandard, true); }

Result<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return Fail(ErrorCode::kInvalid, "base64 text is cut off");
  if (text.ends_with("==")) {
    text.remove_suffix(2);
  } else if (text.ends_with('=')) {
    text.remove_suffix(1);
  }
  return Decode(text, kStandard);
}

std::string Base64UrlEncode(std::string_view bytes) { return Encode(bytes, kUrl, false); }

Result<std::string> Base64UrlDecode(std::string_view text) { return Decode(text, kUrl); }

}  // namespace bimetal
