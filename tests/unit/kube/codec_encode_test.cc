#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/gpujob.pb.h"
#include "api/kubernetes.pb.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"

namespace bimetal::kube {
namespace {

TEST(CodecEncodeTest, WritesAsKubernetesDoes) {
  api::Lease lease;
  lease.mutable_metadata()->set_name("l");
  (*lease.mutable_metadata()->mutable_labels())["z"] = "1";
  (*lease.mutable_metadata()->mutable_labels())["a"] = "\"\\\n\x01";
  lease.mutable_metadata()->set_generation(9007199254740993);
  lease.mutable_spec()->set_lease_transitions(0);
  EXPECT_EQ(ToJson(lease),
            R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l",)"
            R"("generation":9007199254740993,"labels":{"a":"\"\\\n\u0001","z":"1"}},)"
            R"("spec":{"leaseTransitions":0}})");
}

TEST(CodecEncodeTest, LeavesOutWhatIsUnsetAndKeepsWhatIsSetEmpty) {
  EXPECT_EQ(ToJson(api::ObjectMeta()), "{}");
  api::Pod pod;
  pod.mutable_spec()->add_containers();
  EXPECT_EQ(ToJson(pod), R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{}]}})");
}

TEST(CodecEncodeTest, RawTextReplacesTheTypedFields) {
  api::EnvVar env;
  env.set_name("A");
  env.set_raw(R"({"name":"A","valueFrom":{"x":1}})");
  EXPECT_EQ(ToJson(env), env.raw());
  env.clear_raw();
  EXPECT_EQ(ToJson(env), R"({"name":"A"})");
}

TEST(CodecEncodeTest, AMessageOfItemsIsAnArray) {
  api::UserInfo user;
  (*user.mutable_extra())["k"].add_items("v");
  EXPECT_EQ(ToJson(user), R"({"extra":{"k":["v"]}})");
}

TEST(CodecEncodeTest, BytesThatAreNotUtf8AreReplaced) {
  api::EnvVar env;
  // The generated setter does not check; a program's output may hold anything.
  env.set_value(
      "a\xFF"
      "b");
  EXPECT_EQ(ToJson(env), R"({"value":"a\ufffdb"})");
}

TEST(CodecEncodeTest, WhatWasReadIsWrittenBack) {
  const std::string text =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},)"
      R"("spec":{"tolerations":[{"key":"k","operator":"Exists","tolerationSeconds":0}]}})";
  api::Pod pod;
  ASSERT_TRUE(FromJson(text, &pod));
  EXPECT_EQ(ToJson(pod), text);
}

TEST(JsonPatchTest, ReplacesTheWholeStatusOfOneUid) {
  api::PodStatus status;
  status.set_phase("Failed");
  EXPECT_EQ(JsonPatchReplaceStatus(status, "u\"1"),
            R"([{"op":"test","path":"/metadata/uid","value":"u\"1"},)"
            R"({"op":"add","path":"/status","value":{"phase":"Failed"}}])");
}

TEST(OverlayJsonTest, MergesObjectsAndReplacesTheRest) {
  EXPECT_EQ(OverlayJson(R"({"b":{"x":1,"y":[1,2]},"a":1.50,"n":12345678901234567890})",
                        R"({"b":{"y":[3],"z":{}},"c":true})")
                .value(),
            R"({"b":{"x":1,"y":[3],"z":{}},"a":1.5,"n":12345678901234567890,"c":true})");
  EXPECT_EQ(OverlayJson("", R"({"a":1})").value(), R"({"a":1})");
  EXPECT_EQ(OverlayJson(R"({"a":1,"b":2})", R"({"a":null})").value(), R"({"b":2})");
  EXPECT_EQ(OverlayJson(R"({"a":1})", R"({"a":{"b":2}})").value(), R"({"a":{"b":2}})");
}

TEST(OverlayJsonTest, RefusesWhatIsNotAnObject) {
  for (const char* bad : {"[]", "1", "{", "{\"a\":}", "nonsense"}) {
    EXPECT_EQ(OverlayJson(bad, "{}").error().code, ErrorCode::kData) << bad;
    EXPECT_EQ(OverlayJson("{}", bad).error().code, ErrorCode::kData) << bad;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_FALSE(OverlayJson(deep + "1" + std::string(100'000, '}'), "{}"));
  EXPECT_FALSE(CheckJson(std::string(100'000, '[') + std::string(100'000, ']')));
  EXPECT_TRUE(CheckJson("[1,{\"a\":null}]"));
  EXPECT_FALSE(CheckJson("{} {}"));
}

TEST(ReplaceInvalidUtf8Test, KeepsWhatIsValid) {
  const std::string good = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  EXPECT_EQ(ReplaceInvalidUtf8(good), good);
  EXPECT_EQ(ReplaceInvalidUtf8("a\x80"
                               "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");          // overlong
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80").find('\xED'), std::string::npos);  // surrogate
}

}  // namespace
}  // namespace bimetal::kube
