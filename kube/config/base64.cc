#include "kube/config/base64.h"

#include <cstdint>

namespace bimetal::kube {
namespace {

int Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int digits = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int digit = Digit(c);
    if (digit < 0 || padding > 0) return Fail(ErrorCode::kInvalid, "not base64");
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    if (++digits % 4 == 0) {
      for (const int shift : {16, 8, 0}) out += static_cast<char>((bits >> shift) & 0xFFu);
    }
  }
  const int rest = digits % 4;
  if (rest == 1 || (rest == 0 ? padding != 0 : padding != 4 - rest)) {
    return Fail(ErrorCode::kInvalid, "not base64");
  }
  if (rest == 2) out += static_cast<char>((bits >> 4) & 0xFFu);
  if (rest == 3) {
    out += static_cast<char>((bits >> 10) & 0xFFu);
    out += static_cast<char>((bits >> 2) & 0xFFu);
  }
  return out;
}

}  // namespace bimetal::kube
