#include "cli/table.h"

#include <algorithm>
#include <cstddef>

#include "cli/text.h"

namespace bimetal::cli {
namespace {

constexpr std::size_t kGap = 2;

// `cells` made fit to print, one for each column.
std::vector<std::string> Fit(const std::vector<std::string>& cells, std::size_t columns) {
  std::vector<std::string> out(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    if (i < cells.size()) out[i] = OneLine(cells[i]);
    if (out[i].empty()) out[i] = "-";
  }
  return out;
}

std::string Line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                 std::size_t indent) {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line.append(widths[i] - DisplayWidth(cells[i]) + kGap, ' ');
  }
  return line + '\n';
}

}  // namespace

std::string RenderTable(const Table& table, std::size_t indent) {
  std::vector<std::vector<std::string>> lines = {Fit(table.header, table.header.size())};
  for (const Row& row : table.rows) lines.push_back(Fit(row.cells, table.header.size()));
  std::vector<std::size_t> widths(table.header.size());
  for (const auto& cells : lines) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(cells[i]));
    }
  }
  std::string out = Line(lines[0], widths, indent);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    out += Line(lines[i + 1], widths, indent);
    const std::string note = OneLine(table.rows[i].note);
    if (!note.empty()) out += std::string(indent + 2, ' ') + note + '\n';
  }
  return out;
}

}  // namespace bimetal::cli
