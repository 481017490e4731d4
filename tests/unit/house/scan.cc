#include "tests/unit/house/scan.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

namespace bimetal::house {
namespace {

namespace fs = std::filesystem;

std::vector<File> ReadAll(const std::string& root, const std::string& folder,
                          const std::function<bool(const fs::path&)>& wanted) {
  std::vector<File> files;
  const fs::path base = fs::path(root) / folder;
  if (!fs::exists(base)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(base)) {
    if (!entry.is_regular_file() || !wanted(entry.path())) continue;
    std::ifstream in(entry.path());
    files.push_back(File{fs::relative(entry.path(), root).generic_string(),
                         std::string(std::istreambuf_iterator<char>(in), {})});
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  return text;
}

}  // namespace

std::vector<File> ReadSources(const std::string& root, const std::string& folder) {
  return ReadAll(root, folder, [](const fs::path& path) {
    const auto extension = path.extension();
    return extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".hip";
  });
}

std::vector<File> ReadCMakeLists(const std::string& root, const std::string& folder) {
  return ReadAll(root, folder,
                 [](const fs::path& path) { return path.filename() == "CMakeLists.txt"; });
}

std::vector<std::string> Includes(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with("#")) continue;
    line = Trim(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = Trim(line.substr(7));
    if (line.empty() || (line[0] != '<' && line[0] != '"')) continue;
    const std::size_t close = line.find(line[0] == '<' ? '>' : '"', 1);
    if (close != std::string_view::npos) names.emplace_back(line.substr(1, close - 1));
  }
  return names;
}

std::string CodeOnly(std::string_view text) {
  std::string code;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("//")) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 1;
      code += ' ';
    } else if (rest.starts_with("R\"(")) {
      const std::size_t end = text.find(")\"", i + 3);
      i = end == std::string_view::npos ? text.size() : end + 1;
      code += "\"\"";
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      code += "\"\"";
    } else if (text[i] == '\'' && (i == 0 || !IsWordCharacter(text[i - 1]))) {  // not 1'000
      for (++i; i < text.size() && text[i] != '\''; ++i) {
        if (text[i] == '\\') ++i;
      }
      code += "''";
    } else {
      code += text[i];
    }
  }
  return code;
}

bool HasWord(std::string_view code, std::string_view word) {
  for (auto at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !IsWordCharacter(code[at - 1])) &&
        (end == code.size() || !IsWordCharacter(code[end]))) {
      return true;
    }
  }
  return false;
}

std::vector<Call> Calls(std::string_view text) {
  std::vector<Call> calls;
  std::string word;
  int depth = 0;
  const auto flush = [&] {
    if (depth > 0 && !word.empty()) calls.back().arguments.push_back(word);
    if (depth > 0) word.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '"') {
      const std::size_t end = std::min(text.find('"', i + 1), text.size());
      word += text.substr(i + 1, end - i - 1);
      i = end;
    } else if (c == '(') {
      flush();
      if (depth++ == 0) calls.push_back(Call{word, {}});
      word.clear();
    } else if (c == ')') {
      flush();
      --depth;
      word.clear();
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == ';') {
      flush();
    } else {
      word += c;
    }
  }
  return calls;
}

bool IsIn(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

std::string FolderOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

}  // namespace bimetal::house
