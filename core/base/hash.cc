#include "core/base/hash.h"

#include <array>
#include <cstdio>

namespace bimetal {

std::uint64_t Hash64(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

std::string ShortHash(std::string_view text) {
  const std::uint64_t hash = Hash64(text);
  std::array<char, 20> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(hash));
  return hex.data();
}

}  // namespace bimetal
