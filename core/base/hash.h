#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bimetal {

// FNV-1a of 64 bits: the same on every machine. Pure.
std::uint64_t Hash64(std::string_view text);
// Hash64 as 16 hex digits, for names that need to differ, not to be secret.
std::string ShortHash(std::string_view text);

}  // namespace bimetal
