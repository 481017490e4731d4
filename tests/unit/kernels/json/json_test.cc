#include "kernels/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::kernels {
namespace {

using testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  std::string error;
  EXPECT_FALSE(ParseJson(text, &error).has_value()) << text;
  return error;
}

TEST(JsonReaderTest, ReadsEveryKind) {
  std::string error;
  const auto value = ParseJson(
      R"( {"a": [1, -2, true, false, null], "b": {"c": "x\n\u00e9\ud83d\ude00\\"}} )", &error);
  ASSERT_TRUE(value.has_value()) << error;
  const auto& list = *value->Find("a")->AsArray();
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(*list[1].AsInteger(), -2);
  EXPECT_TRUE(*list[2].AsBool());
  EXPECT_EQ(*value->Find("b")->Find("c")->AsString(), "x\n\xc3\xa9\xf0\x9f\x98\x80\\");
  EXPECT_EQ(value->Find("z"), nullptr);
}

TEST(JsonReaderTest, SaysWhereATextIsBroken) {
  EXPECT_EQ(ErrorOf("{\n  \"a\": tru\n}"), "line 2, column 8: no JSON value begins here");
  EXPECT_THAT(ErrorOf(""), HasSubstr("text ends"));
  EXPECT_THAT(ErrorOf("{\"a\":1"), HasSubstr("expected ',' or '}'"));
  EXPECT_THAT(ErrorOf("[1,]"), HasSubstr("column 4"));
  EXPECT_THAT(ErrorOf("{} {}"), HasSubstr("text after the value"));
  EXPECT_THAT(ErrorOf("{\"a\":1,\"a\":2}"), HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(ErrorOf("\"abc"), HasSubstr("string without an end"));
  EXPECT_THAT(ErrorOf("\"a\tb\""), HasSubstr("control character"));
  EXPECT_THAT(ErrorOf("\"\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(ErrorOf("\"\\ud800x\""), HasSubstr("surrogate"));
  EXPECT_THAT(ErrorOf("\"\\u12\""), HasSubstr("unknown escape"));
}

TEST(JsonReaderTest, RefusesNumbersThatAreNoIntegers) {
  EXPECT_THAT(ErrorOf("1.5"), HasSubstr("no integer"));
  EXPECT_THAT(ErrorOf("1e3"), HasSubstr("no integer"));
  EXPECT_THAT(ErrorOf("01"), HasSubstr("leading zero"));
  EXPECT_THAT(ErrorOf("9223372036854775808"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf("-"), HasSubstr("no JSON value"));
}

TEST(JsonReaderTest, RefusesEndlessNesting) {
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("nested too deeply"));
}

TEST(JsonReaderTest, NoPrefixOfATextCrashesIt) {
  const std::string text = R"({"a":[1,{"b":"\u00e9\\"}],"c":null})";
  for (std::size_t length = 0; length < text.size(); ++length) {
    std::string error;
    EXPECT_FALSE(ParseJson(text.substr(0, length), &error).has_value());
    EXPECT_FALSE(error.empty());
  }
}

TEST(JsonLineTest, WritesKeysInOrderAndEscapes) {
  EXPECT_EQ(JsonLine().Add("a", "x\"\\\n\x01").Add("b", std::uint64_t{7}).Add("c", true).Text(),
            R"({"a":"x\"\\\u000a\u0001","b":7,"c":true})");
  EXPECT_EQ(JsonLine().Text(), "{}");
}

TEST(JsonLineTest, ReplacesBytesThatAreNoUtf8) {
  for (const char* bad : {"\xff", "\xc0\x80", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    const std::string line = JsonLine().Add("a", bad).Text();
    EXPECT_THAT(line, HasSubstr("\xef\xbf\xbd"));
    std::string error;
    EXPECT_TRUE(ParseJson(line, &error).has_value()) << error;
  }
  EXPECT_EQ(JsonLine().Add("a", "\xc3\xa9").Text(), "{\"a\":\"\xc3\xa9\"}");
}

}  // namespace
}  // namespace bimetal::kernels
