#pragma once

#include <string>
#include <vector>

namespace bimetal::cli {

// One row; missing cells and empty ones are shown as "-".
struct Row {
  std::vector<std::string> cells;
  // Where not empty: a line below the row, two columns further to the right.
  std::string note{};
};

struct Table {
  std::vector<std::string> header;
  std::vector<Row> rows;
};

// The table as text, each line ended by a newline, `indent` spaces before each. Columns are as wide
// as their widest cell (in columns of a terminal, not in bytes) and two spaces apart; no line has
// spaces at its end. Cells and notes are made one line each (OneLine). Cells beyond the header are
// not shown. Pure: the same table gives the same bytes.
std::string RenderTable(const Table& table, std::size_t indent = 0);

}  // namespace bimetal::cli
