#include "cli/text.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

TEST(OneLine, BreaksBecomeSpacesAndTheEndsAreBare) {
  EXPECT_EQ(OneLine("  device 3:\n\tECC error\r\n"), "device 3:  ECC error");
  EXPECT_EQ(OneLine(""), "");
  EXPECT_EQ(OneLine(" \n "), "");
}

TEST(OneLine, NothingCanMoveTheCursorOrTurnTheText) {
  EXPECT_EQ(OneLine("a\x1b[2Jb"), "a\uFFFD[2Jb");
  EXPECT_EQ(OneLine("a\x7f\x07z"), "a\uFFFD\uFFFDz");
  EXPECT_EQ(OneLine("\u009b31m"), "\uFFFD31m");  // the one-byte form of ESC [
  EXPECT_EQ(OneLine("\u202Egpj"), "\uFFFDgpj");  // right to left from here
  EXPECT_EQ(OneLine(std::string("a\0b", 3)), "a\uFFFDb");
}

TEST(OneLine, KeepsWhatIsUtf8AndMendsWhatIsNot) {
  EXPECT_EQ(OneLine("Größe 测 \U0001F600"), "Größe 测 \U0001F600");
  EXPECT_EQ(OneLine("a\xffz"), "a\uFFFDz");
  EXPECT_EQ(OneLine("cut \xe6\xb5").substr(0, 4), "cut ");
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0U);
  EXPECT_EQ(DisplayWidth("node-1"), 6U);
  EXPECT_EQ(DisplayWidth("Größe"), 5U);
  EXPECT_EQ(DisplayWidth("测试"), 4U);
  EXPECT_EQ(DisplayWidth("\U0001F600"), 2U);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1U);
  EXPECT_EQ(DisplayWidth("\xff\xe6"), 2U);  // bytes that are not UTF-8
}

TEST(HumanDuration, HasTheStepsOfKubectl) {
  EXPECT_EQ(HumanDuration(Seconds(-5)), "0s");
  EXPECT_EQ(HumanDuration(Seconds(119)), "119s");
  EXPECT_EQ(HumanDuration(Seconds(120)), "2m");
  EXPECT_EQ(HumanDuration(Seconds(264)), "4m24s");
  EXPECT_EQ(HumanDuration(Minutes(29)), "29m");
  EXPECT_EQ(HumanDuration(Minutes(183)), "3h3m");
  EXPECT_EQ(HumanDuration(Minutes(30 * 60)), "30h");
  EXPECT_EQ(HumanDuration(Minutes((6 * 24 + 4) * 60)), "6d4h");
  EXPECT_EQ(HumanDuration(Minutes(100 * 24 * 60)), "100d");
  EXPECT_EQ(HumanDuration(Minutes((2 * 365 + 34) * 24 * 60)), "2y34d");
  EXPECT_EQ(HumanDuration(Minutes(9 * 365 * 24 * 60)), "9y");
}

TEST(HumanSince, SaysNothingOfATimeThatIsNone) {
  const TimePoint until = *ParseTime("2026-11-30T12:01:30Z");
  EXPECT_EQ(HumanSince("2026-11-30T12:00:00Z", until), "90s");
  EXPECT_EQ(HumanSince("", until), "");
  EXPECT_EQ(HumanSince("yesterday", until), "");
}

}  // namespace
}  // namespace bimetal::cli
