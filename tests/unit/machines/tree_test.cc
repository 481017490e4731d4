#include "tests/machines/tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::machines {
namespace {

namespace fs = std::filesystem;

Tree Two() { return {{"a/b", {File::Kind::kText, "1"}}, {"c", {File::Kind::kLink, "a/b"}}}; }

TEST(ApplyTreeTest, WritesAndThenRemovesWhatIsNoLongerNamed) {
  agent::TestTree tree;
  ASSERT_TRUE(ApplyTree(tree.root(), Two()));
  EXPECT_EQ(*ReadFile(tree.Path("a/b")), "1");
  EXPECT_EQ(*ReadFile(tree.Path("c")), "1");
  tree.Write("mine", "stays");
  ASSERT_TRUE(ApplyTree(tree.root(), {{"d", {File::Kind::kText, "2"}}}));
  EXPECT_FALSE(fs::exists(tree.Path("a")));
  EXPECT_FALSE(fs::is_symlink(tree.Path("c")));
  EXPECT_EQ(*ReadFile(tree.Path("d")), "2");
  EXPECT_EQ(*ReadFile(tree.Path("mine")), "stays");
}

TEST(ApplyTreeTest, LeavesNoHalfWrittenFileBehind) {
  agent::TestTree tree;
  ASSERT_TRUE(ApplyTree(tree.root(), Two()));
  for (const auto& entry : fs::recursive_directory_iterator(tree.root())) {
    EXPECT_NE(entry.path().extension(), ".new");
  }
}

// A manifest that somebody has changed must not make us remove files elsewhere.
TEST(ApplyTreeTest, RemovesNothingOutsideTheRoot) {
  agent::TestTree outside;
  outside.Write("keep", "x");
  agent::TestTree tree;
  tree.Write("machine/manifest", outside.Path("keep") + "\n../" +
                                     fs::path(outside.root()).filename().string() + "/keep\n");
  ASSERT_TRUE(ApplyTree(tree.root(), Two()));
  EXPECT_TRUE(fs::exists(outside.Path("keep")));
}

TEST(ApplyTreeTest, SaysWhereItCannotWrite) {
  agent::TestTree tree;
  tree.Write("a", "a file where a folder must be");
  EXPECT_FALSE(ApplyTree(tree.root(), Two()));
  EXPECT_FALSE(ApplyTree(tree.root(), {{"x", {File::Kind::kCopy, "/no/such/library"}}}));
}

}  // namespace
}  // namespace bimetal::machines
