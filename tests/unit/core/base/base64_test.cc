#include "core/base/base64.h"

#include <gtest/gtest.h>

#include <string>

namespace bimetal {
namespace {

TEST(Base64, MatchesTheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> kVectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [plain, text] : kVectors) {
    EXPECT_EQ(Base64Encode(plain), text);
    EXPECT_EQ(Base64Decode(text).value(), plain);
  }
}

TEST(Base64, EveryByteSurvivesBothAlphabets) {
  std::string bytes;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    bytes += 'x';
    EXPECT_EQ(Base64Decode(Base64Encode(bytes)).value(), bytes);
    EXPECT_EQ(Base64UrlDecode(Base64UrlEncode(bytes)).value(), bytes);
  }
  EXPECT_EQ(Base64UrlEncode("\xfb\xff"), "-_8");
}

TEST(Base64, TextThatNobodyWouldEncodeIsRefused) {
  for (const char* text : {"Zg", "Zg=", "Z===", "Zh==", "Zm9=", "Z g=", "Zg==Zg==", "Zm9v\n",
                           "-_8=", "====", "=", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(Base64Decode(text)) << text;
  }
  for (const char* text : {"Z", "+/8", "Zg==", "Zh"}) EXPECT_FALSE(Base64UrlDecode(text)) << text;
}

TEST(Base64, TheErrorDoesNotQuoteTheText) {
  EXPECT_EQ(Base64Decode("se!cret!").error().message.find("se!cret"), std::string::npos);
}

}  // namespace
}  // namespace bimetal
