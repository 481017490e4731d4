#pragma once

#include <string>
#include <string_view>

namespace bimetal::agent {

// SHA-256 (FIPS 180-4) of `data` as 64 lower-case hex digits.
std::string Sha256Hex(std::string_view data);

}  // namespace bimetal::agent
