#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bimetal::fuzz {

// A machine's files in memory, for readers that take a root folder. One for the whole process.
class Tree {
 public:
  Tree();
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const std::string& root() const { return root_; }
  void Write(const std::string& path, std::string_view text) const;
  // Writes one part of `text` (fuzz.h) to each of `paths`; those without a part stay as they are.
  void WriteParts(const std::vector<std::string>& paths, std::string_view text) const;

 private:
  std::string root_;
};

}  // namespace bimetal::fuzz
