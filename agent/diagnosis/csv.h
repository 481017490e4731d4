#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bimetal::agent {

// The fields of one line of a dated table: separated by commas, trimmed; a field in double quotes
// keeps its commas, spaces and (doubled) quotes. Pure.
std::vector<std::string> SplitCsv(std::string_view line);

// The lines of a table that hold data: no comments (#), no empty ones. Pure.
std::vector<std::string_view> CsvLines(std::string_view text);

}  // namespace bimetal::agent
