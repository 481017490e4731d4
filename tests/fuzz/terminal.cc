// What users write on the command line of bimetal, and what others wrote that it shows.
#include <algorithm>

#include "cli/flags.h"
#include "cli/table.h"
#include "cli/text.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  const std::string line = cli::OneLine(text);
  Require(cli::OneLine(line) == line);
  for (const unsigned char c : line) Require(c >= ' ' && c != 0x7f);
  Require(cli::DisplayWidth(line) <= line.size());
  cli::HumanSince(text, TimePoint{1'800'000'000'000});

  std::vector<std::string> words;
  while (words.size() < 16) {
    const auto end = text.find('\n');
    words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  const auto command = cli::ParseFlags(words);
  if (!command) Require(!command.error().message.empty());
  // Three lines, whatever stands in the cells: the header, the row, its note.
  const std::string table = cli::RenderTable({{"A", "B"}, {{words, "note"}}});
  Require(std::count(table.begin(), table.end(), '\n') == 3);
}
