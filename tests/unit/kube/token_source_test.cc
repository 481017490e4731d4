#include "kube/transport/token_source.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"

namespace bimetal::kube {
namespace {

// A projected volume as the kubelet makes it: the file is a link that is swapped.
class TokenSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    config_.token_file = (folder_ / "token").string();
  }
  void Swap(const std::string& text) {
    const auto file = folder_ / ("v" + std::to_string(++version_));
    std::ofstream(file) << text;
    std::filesystem::create_symlink(file, folder_ / "next");
    std::filesystem::rename(folder_ / "next", folder_ / "token");
  }

  std::filesystem::path folder_;
  Config config_;
  test::FakeClock clock_;
  int version_ = 0;
};

TEST_F(TokenSourceTest, ReadsARotatedTokenWithinAMinute) {
  Swap("one\n");
  TokenSource source(config_, clock_, Seconds(60));
  EXPECT_EQ(source.Get().value(), "one");
  clock_.Advance(Minutes(50));
  EXPECT_EQ(source.Get().value(), "one");
  Swap("two\n");
  clock_.Advance(Seconds(59));
  EXPECT_EQ(source.Get().value(), "one");
  clock_.Advance(Seconds(1));
  EXPECT_EQ(source.Get().value(), "two");
}

TEST_F(TokenSourceTest, AnEmptyFileLeavesTheLastTokenAndIsReadAgainSoon) {
  Swap("one");
  TokenSource source(config_, clock_, Seconds(60));
  EXPECT_EQ(source.Get().value(), "one");
  Swap("");
  clock_.Advance(Seconds(60));
  EXPECT_EQ(source.Get().value(), "one");
  Swap("two");
  clock_.Advance(Seconds(1));
  EXPECT_EQ(source.Get().value(), "two");
}

TEST_F(TokenSourceTest, ARefusedTokenIsReadAgainAtOnce) {
  Swap("one");
  TokenSource source(config_, clock_, Seconds(60));
  EXPECT_EQ(source.Get().value(), "one");
  EXPECT_FALSE(source.Refresh("one"));
  Swap("two");
  EXPECT_TRUE(source.Refresh("one"));
  EXPECT_EQ(source.Get().value(), "two");
}

TEST_F(TokenSourceTest, AFileThatNeverGaveATokenIsAnError) {
  TokenSource missing(config_, clock_, Seconds(60));
  EXPECT_EQ(missing.Get().error().code, ErrorCode::kUnauthorized);
  Swap("two words");
  TokenSource odd(config_, clock_, Seconds(60));
  ASSERT_FALSE(odd.Get());
  EXPECT_THAT(odd.Get().error().message, testing::Not(testing::HasSubstr("words")));
}

TEST_F(TokenSourceTest, AnInlineTokenStays) {
  Config config;
  config.token = "fixed";
  TokenSource source(config, clock_, Seconds(60));
  clock_.Advance(Minutes(600));
  EXPECT_EQ(source.Get().value(), "fixed");
  EXPECT_FALSE(source.Refresh("fixed"));
  EXPECT_EQ(TokenSource(Config(), clock_, Seconds(60)).Get().value(), "");
}

}  // namespace
}  // namespace bimetal::kube
