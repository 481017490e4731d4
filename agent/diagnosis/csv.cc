#include "agent/diagnosis/csv.h"

namespace bimetal::agent {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// Takes a field in quotes off the front of `line`, up to and with the closing quote.
std::string TakeQuoted(std::string_view& line) {
  std::string field;
  line.remove_prefix(1);
  while (!line.empty()) {
    const char c = line.front();
    line.remove_prefix(1);
    if (c != '"') {
      field += c;
    } else if (!line.empty() && line.front() == '"') {
      field += c;
      line.remove_prefix(1);
    } else {
      break;
    }
  }
  return field;
}

}  // namespace

std::vector<std::string> SplitCsv(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    line = Trimmed(line);
    if (!line.empty() && line.front() == '"') {
      fields.push_back(TakeQuoted(line));
    } else {
      fields.emplace_back(Trimmed(line.substr(0, line.find(','))));
    }
    const auto comma = line.find(',');
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> CsvLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = Trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace bimetal::agent
