#pragma once

#include <string>
#include <string_view>
#include <vector>

// Reads sources and CMake lists just well enough for the checks.
namespace bimetal::house {

struct File {
  std::string path;  // relative to the repository, "core/base/log.cc"
  std::string text;
};

// All sources (.h .cc .cu .hip) and CMakeLists.txt below `folder` of the repository, sorted by
// path.
std::vector<File> ReadSources(const std::string& root, const std::string& folder);
std::vector<File> ReadCMakeLists(const std::string& root, const std::string& folder);

// Names in #include directives: "core/base/log.h", "map".
std::vector<std::string> Includes(std::string_view text);

// `text` without comments and string literals.
std::string CodeOnly(std::string_view text);
// True where `word` stands in `code` as a whole identifier.
bool HasWord(std::string_view code, std::string_view word);

// A call in a CMake list, comments left out: name and arguments.
struct Call {
  std::string name;
  std::vector<std::string> arguments;
};
std::vector<Call> Calls(std::string_view text);

// True where `path` is `folder` or below it.
bool IsIn(std::string_view path, std::string_view folder);
// "a/b/c.h" -> "a/b".
std::string FolderOf(std::string_view path);

}  // namespace bimetal::house
