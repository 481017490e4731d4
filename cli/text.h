#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/time.h"

namespace bimetal::cli {

// `text` made fit for one line of a terminal: line breaks and tabs become spaces; other control
// characters, characters that turn the direction of writing, and bytes that are not UTF-8 become
// U+FFFD; spaces at both ends go. What nodes and users write must not be able to move the cursor.
std::string OneLine(std::string_view text);

// Columns of a terminal that `text` takes: wide East Asian characters and emoji 2, combining marks
// 0, a byte that is not UTF-8 1.
std::size_t DisplayWidth(std::string_view text);

// A length of time as kubectl shows ages: "45s", "4m24s", "29m", "5h3m", "30h", "6d4h", "2y34d".
// Negative lengths (a clock that differs from the server's) are "0s".
std::string HumanDuration(Millis d);

// From `since` (RFC 3339, as the API writes it) to `until`; "" for an empty or unreadable text.
std::string HumanSince(std::string_view since, TimePoint until);

}  // namespace bimetal::cli
