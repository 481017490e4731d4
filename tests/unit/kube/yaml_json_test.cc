#include "kube/config/yaml_json.h"

#include <gtest/gtest.h>

namespace bimetal::kube {
namespace {

TEST(YamlJsonTest, ReadsWhatKubernetesToolsRead) {
  const auto json = YamlToJson(R"(
kind: ValidationProfile
spec:
  retries: 3
  share: -0.5e3
  floors:
  - {model: "10de:2330", value: "2200", check: hbm-triad}
  quoted: "true"
  plain: yes please
  on: true
  nothing: ~
  octal: 010
  date: 2026-01-31
)");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(*json, R"({"kind":"ValidationProfile","spec":{"retries":3,"share":-0.5e3,)"
                   R"("floors":[{"model":"10de:2330","value":"2200","check":"hbm-triad"}],)"
                   R"("quoted":"true","plain":"yes please","on":true,"nothing":null,"octal":"010",)"
                   R"("date":"2026-01-31"}})");
  EXPECT_EQ(*YamlToJson(R"({"a": [1, "2", null]})"), R"({"a":[1,"2",null]})") << "JSON is YAML";
}

TEST(YamlJsonTest, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(YamlToJson("").error().message, "no document");
  EXPECT_EQ(YamlToJson("a: 1\n---\nb: 2\n").error().message, "more than one document");
  EXPECT_TRUE(YamlToJson("---\na: 1\n---\n"));
  EXPECT_EQ(YamlToJson("a: [1").error().message.substr(0, 8), "not YAML");
  // yaml-cpp finds document after document in it, all of them empty.
  EXPECT_EQ(YamlToJson("a: 1\n---\n, b: 2\n").error().message,
            "not YAML: line 3: no document begins like this");
  EXPECT_EQ(YamlToJson("? [a]\n: 1").error().message, "a key that is no text");
  EXPECT_EQ(YamlToJson(std::string(100, '[') + std::string(100, ']')).error().message,
            "nested too deeply");
  // Each line doubles the one before.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k > 0 ? ", " : "") + last;
    bomb += "]\n";
  }
  EXPECT_EQ(YamlToJson(bomb).error().message, "longer than 1 MiB");
}

}  // namespace
}  // namespace bimetal::kube
