#include "agent/devices/root_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/devices/test_tree.h"

namespace bimetal::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RootFilesTest, ReadsTextWithoutTrailingSpace) {
  TestTree tree;
  tree.Write("sys/a", "SPX\n");
  EXPECT_EQ(RootFiles(tree.root()).Text("sys/a"), Reading<std::string>::Of("SPX"));
  EXPECT_EQ(RootFiles(tree.root() + "//").Text("/sys/a").value, "SPX");
}

TEST(RootFilesTest, TellsMissingAndEmptyFromBroken) {
  TestTree tree;
  tree.Write("empty", "").Write("binary", std::string("a\0b", 3)).Write("folder/x", "1");
  tree.Write("huge", std::string(64 * 1024 + 1, 'x')).Fifo("fifo");
  const RootFiles files(tree.root());
  EXPECT_EQ(files.Text("none").state, Known::kUnknown);
  EXPECT_EQ(files.Text("empty").state, Known::kUnknown);
  EXPECT_EQ(files.Text("binary").state, Known::kError);
  EXPECT_EQ(files.Text("huge").state, Known::kError);
  EXPECT_EQ(files.Text("folder").state, Known::kError);
  EXPECT_EQ(files.Text("fifo").state, Known::kError);
  EXPECT_THAT(files.Text("fifo").why, HasSubstr("not a regular file"));
}

TEST(RootFilesTest, DoesNotFollowLinksOutOfTheRoot) {
  TestTree outside;
  outside.Write("secret", "top");
  TestTree tree;
  tree.Write("inside", "yes").Link("absolute", "/inside").Link("relative", "inside");
  tree.Link("climbing", "../../../../../.." + outside.Path("secret"));
  tree.Link("leaving", outside.Path("secret"));
  const RootFiles files(tree.root());
  EXPECT_EQ(files.Text("absolute").value, "yes");
  EXPECT_EQ(files.Text("relative").value, "yes");
  EXPECT_EQ(files.Text("climbing").state, Known::kUnknown);
  EXPECT_EQ(files.Text("leaving").state, Known::kUnknown);
  EXPECT_EQ(files.Text("../../.." + outside.Path("secret")).state, Known::kUnknown);
}

TEST(RootFilesTest, ReadsNumbersStrictly) {
  TestTree tree;
  tree.Write("n", "-1\n").Write("hex", "0x1002\n").Write("word", "12 apples");
  tree.Write("big", "99999999999999999999");
  const RootFiles files(tree.root());
  EXPECT_EQ(files.Number("n").value, -1);
  EXPECT_EQ(files.Number("hex").value, 0x1002);
  EXPECT_EQ(files.Number("word").state, Known::kError);
  EXPECT_EQ(files.Number("big").state, Known::kError);
  EXPECT_EQ(files.Number("none").state, Known::kUnknown);
}

TEST(RootFilesTest, ListsSortedAndNamesLinkTargets) {
  TestTree tree;
  tree.Write("d/b", "").Write("d/a", "").Link("driver", "../../drivers/amdgpu");
  const RootFiles files(tree.root());
  EXPECT_THAT(files.List("d").value, ElementsAre("a", "b"));
  EXPECT_EQ(files.List("none").state, Known::kUnknown);
  EXPECT_EQ(files.List("d/a").state, Known::kUnknown);
  EXPECT_EQ(files.LinkName("driver").value, "amdgpu");
  EXPECT_EQ(files.LinkName("d").state, Known::kUnknown);
}

TEST(RootFilesTest, KernelLogKeepsTheNewestPart) {
  TestTree tree;
  tree.Write("kmsg", "old line\nnew\n").Fifo("fifo");
  EXPECT_EQ(RootFiles(tree.root()).KernelLog("kmsg", 4).value, "new\n");
  EXPECT_EQ(RootFiles(tree.root()).KernelLog("fifo", 4).state, Known::kError);
}

}  // namespace
}  // namespace bimetal::agent
