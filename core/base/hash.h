#pragma once

#include <string>
#include <string_view>

namespace bimetal {

// FNV-1a of 64 bits as 16 hex digits, for names that need to differ, not to be secret.
std::string ShortHash(std::string_view text);

}  // namespace bimetal
