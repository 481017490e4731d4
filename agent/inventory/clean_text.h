#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bimetal::agent {

// `text` as valid, printable UTF-8 of at most `limit` bytes; what does not fit becomes '?' or is
// cut. A report with other text would be refused as a whole.
std::string CleanText(std::string_view text, std::size_t limit);

// The same for names that become keys and label values: visible ASCII alone, other bytes are '-'.
std::string CleanToken(std::string_view text, std::size_t limit);

}  // namespace bimetal::agent
