#include "api/generator/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/generator/document.h"

namespace bimetal::api {
namespace {

std::string Yaml(const std::string& text) {
  const std::string yaml = ToYaml(Document().Set("k", text));
  return yaml.substr(2);
}

TEST(YamlTest, WritesPlainWordsWithoutQuotes) {
  EXPECT_EQ(Yaml("metadata.name"), " metadata.name\n");
  EXPECT_EQ(Yaml("the pods of a job"), " the pods of a job\n");
}

TEST(YamlTest, QuotesWhatAReaderWouldTakeForSomethingElse) {
  for (const std::string text : {"true", "No", "null", "1", "1.5", "-x", "a: b", "# c", "", " a",
                                 "a ", "*a", "[a]", ".5", ".inf", "y", "{}", "a,b"}) {
    EXPECT_EQ(Yaml(text), " '" + text + "'\n");
  }
}

TEST(YamlTest, DoublesSingleQuotes) { EXPECT_EQ(Yaml("it's"), " 'it''s'\n"); }

TEST(YamlTest, EscapesControlCharactersAndNewlines) {
  EXPECT_EQ(Yaml("a\nb"), " \"a\\nb\"\n");
  EXPECT_EQ(Yaml(std::string("a\x01\"")), " \"a\\u0001\\\"\"\n");
}

TEST(YamlTest, FoldsLongTextAtSingleSpaces) {
  std::string text = "word";
  for (int i = 0; i < 40; ++i) text += " word";
  const std::string yaml = Yaml(text);
  EXPECT_THAT(yaml, testing::StartsWith(" >-\n  word"));
  std::string joined;
  std::size_t longest = 0;
  std::size_t at = yaml.find('\n') + 1;
  while (at < yaml.size()) {
    const std::size_t end = yaml.find('\n', at);
    longest = std::max(longest, end - at);
    joined += (joined.empty() ? "" : " ") + yaml.substr(at + 2, end - at - 2);
    at = end + 1;
  }
  EXPECT_EQ(joined, text);
  EXPECT_LE(longest, 100U);
}

TEST(YamlTest, DoesNotFoldWhereSpacesWouldBeLost) {
  const std::string text = std::string(90, 'a') + "  b";
  EXPECT_THAT(Yaml(text), testing::Not(testing::HasSubstr(">-")));
}

TEST(YamlTest, NestsMapsAndLists) {
  Document document;
  document.Set("list", Document(Document::List{Document().Set("a", 1).Set("b", Document()),
                                               Document("x"), Document(Document::List{})}));
  document.SetTrue("flag");
  EXPECT_EQ(ToYaml(document), "list:\n- a: 1\n  b: {}\n- x\n- []\nflag: true\n");
}

TEST(JsonTest, ReadsWhatItWrites) {
  const std::string text = R"({"a":[1,true,"x\"y"],"b":{}})";
  Document document;
  ASSERT_TRUE(ParseJson(text, &document));
  EXPECT_EQ(ToJson(document), text);
}

TEST(JsonTest, RefusesFloatsNullsAndBrokenText) {
  Document document;
  for (const char* text : {"1.5", "null", "{", "1e300"}) {
    EXPECT_FALSE(ParseJson(text, &document)) << text;
  }
}

}  // namespace
}  // namespace bimetal::api
