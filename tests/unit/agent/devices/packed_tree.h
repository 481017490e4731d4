#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "tests/unit/agent/devices/test_tree.h"
#include "tests/unit/recordings.h"

namespace bimetal::agent {

// What the readers make of the recorded tree `name` that is packed as root.tar.xz. Unpacked and
// read once in a process: such a tree has thousands of files, and nobody writes into it.
inline const Inventory& ReadPacked(const std::string& name) {
  static std::map<std::string, Inventory> read;
  const auto [at, fresh] = read.try_emplace(name);
  if (!fresh) return at->second;
  const TestTree tree;
  const std::string command = "cd '" + tree.root() + "' && '" BIMETAL_CMAKE "' -E tar xf '" +
                              std::filesystem::absolute(Fixtures() + name).string() +
                              "/root.tar.xz'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return at->second = ReadTree(tree.root());
}

}  // namespace bimetal::agent
