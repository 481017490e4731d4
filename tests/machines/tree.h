#pragma once

#include <map>
#include <string>

#include "core/base/result.h"

namespace bimetal::machines {

// What one file of a machine's root is to be.
struct File {
  enum class Kind { kText, kLink, kCopy };
  Kind kind = Kind::kText;
  std::string value;  // the text, the link's target, or the path of the file to copy
};

// A whole root by path, without leading slashes.
using Tree = std::map<std::string, File>;

// Makes `root` hold exactly `tree` and nothing that an earlier call wrote and this one does not
// name. Each file is replaced as a whole, so that a reader sees the old or the new one. What this
// tool has not written stays. Keeps its list of files as machine/manifest.
Status ApplyTree(const std::string& root, const Tree& tree);

// The text of a file. Errors: kNotFound, kInternal.
Result<std::string> ReadFile(const std::string& path);

}  // namespace bimetal::machines
