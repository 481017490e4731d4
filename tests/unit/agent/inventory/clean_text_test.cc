#include "agent/inventory/clean_text.h"

#include <gtest/gtest.h>

#include <string>

namespace bimetal::agent {
namespace {

TEST(CleanTextTest, ValidTextStays) {
  EXPECT_EQ(CleanText("Radeon \xE2\x84\xA2 \xC3\xA4 \xF0\x9F\x92\xA9", 100),
            "Radeon \xE2\x84\xA2 \xC3\xA4 \xF0\x9F\x92\xA9");
}

TEST(CleanTextTest, ControlBytesAndBrokenUtf8BecomeQuestionMarks) {
  EXPECT_EQ(CleanText(std::string("a\0b\n\x7f", 5), 100), "a?b??");
  EXPECT_EQ(CleanText("\xC3", 100), "?");
  EXPECT_EQ(CleanText("\xC0\x80", 100), "??");            // overlong
  EXPECT_EQ(CleanText("\xED\xA0\x80", 100), "???");       // surrogate
  EXPECT_EQ(CleanText("\xF5\x80\x80\x80", 100), "????");  // beyond Unicode
}

TEST(CleanTextTest, CutsBetweenCharacters) {
  EXPECT_EQ(CleanText("ab\xC3\xA4", 3), "ab");
  EXPECT_EQ(CleanText("abc", 0), "");
}

TEST(CleanTokenTest, OnlyVisibleAsciiIsLeft) {
  EXPECT_EQ(CleanToken("a b\t\xC3\xA4", 100), "a-b---");
  EXPECT_EQ(CleanToken("abcdef", 3), "abc");
}

}  // namespace
}  // namespace bimetal::agent
