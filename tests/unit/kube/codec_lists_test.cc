#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kubernetes.pb.h"
#include "kube/codec/codec.h"

namespace bimetal::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct PodSink final : ItemSink {
  google::protobuf::Message* New() override { return &pods.emplace_back(); }
  Status Done(google::protobuf::Message*) override { return {}; }
  Status Failed(google::protobuf::Message*, Error error) override {
    failed.push_back(pods.back().metadata().name() + ": " + error.message);
    pods.pop_back();
    return skip ? Status() : Status(tl::unexpected<Error>(std::move(error)));
  }
  std::deque<api::Pod> pods;
  std::vector<std::string> failed;
  bool skip = true;
};

TEST(ListTest, ReadsItemsAndPageWhateverTheOrder) {
  for (
      const char* text :
      {R"({"kind":"PodList","metadata":{"resourceVersion":"5","continue":"c","remainingItemCount":9},)"
       R"("items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})",
       R"({"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],)"
       R"("metadata":{"remainingItemCount":9,"continue":"c","resourceVersion":"5"}})"}) {
    PodSink sink;
    const auto meta = ListFromJson(text, sink);
    ASSERT_TRUE(meta) << meta.error().message;
    EXPECT_EQ(meta->resource_version, "5");
    EXPECT_EQ(meta->continue_token, "c");
    EXPECT_EQ(meta->remaining, 9);
    ASSERT_EQ(sink.pods.size(), 2u);
    EXPECT_EQ(sink.pods[1].metadata().name(), "b");
  }
}

TEST(ListTest, NullItemsAreAnEmptyList) {
  PodSink sink;
  ASSERT_TRUE(
      ListFromJson(R"({"kind":"PodList","metadata":{"resourceVersion":"5"},"items":null})", sink));
  EXPECT_TRUE(sink.pods.empty());
}

TEST(ListTest, ABadItemIsNamedAndItsNeighboursLive) {
  PodSink sink;
  ASSERT_TRUE(ListFromJson(
      R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}},)"
      R"({"metadata":{"name":"b"},"spec":{"priority":"high"}},{"spec":{}},7,{"metadata":{"name":"c"}}]})",
      sink));
  EXPECT_EQ(sink.pods.size(), 2u);
  EXPECT_THAT(
      sink.failed,
      ElementsAre("b: items[1].spec.priority: expected an integer, found a string",
                  ": items[2]: metadata.name is missing", ": items[3]: expected an object"));
}

TEST(ListTest, WhatIsNoListIsAnError) {
  for (const char* text :
       {R"({"kind":"Status","status":"Failure"})", "{}", "[]", "<html>", "",
        R"({"kind":"PodList","items":[]})", R"({"metadata":{"resourceVersion":"5"},"items":{}})",
        R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}})",
        R"({"metadata":{"resourceVersion":5},"items":[]})"}) {
    PodSink sink;
    const auto meta = ListFromJson(text, sink);
    ASSERT_FALSE(meta) << text;
    EXPECT_EQ(meta.error().code, ErrorCode::kData);
  }
}

TEST(WatchLineTest, ReadsTypeAndObjectInAnyOrder) {
  for (const char* text : {R"({"type":"MODIFIED","object":{"metadata":{"name":"a"}}})",
                           R"({"object":{"metadata":{"name":"a"}},"type":"MODIFIED"})"}) {
    api::Pod pod;
    const auto line = WatchLineFromJson(text, &pod);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->type, WatchType::kModified);
    EXPECT_EQ(pod.metadata().name(), "a");
  }
}

TEST(WatchLineTest, ABookmarkIsAVersionAndNothingElse) {
  for (
      const char* object :
      {R"({"kind":"Pod","metadata":{"resourceVersion":"650","labels":null},"spec":{"containers":null}})",
       R"({"kind":"Pod","metadata":{"resourceVersion":"650"}})",
       R"({"metadata":{"resourceVersion":"650"},"spec":"not even an object"})"}) {
    api::Pod pod;
    const auto line =
        WatchLineFromJson(std::string(R"({"type":"BOOKMARK","object":)") + object + "}", &pod);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->type, WatchType::kBookmark);
    EXPECT_EQ(line->resource_version, "650");
    EXPECT_FALSE(pod.has_metadata());
  }
}

TEST(WatchLineTest, AnErrorEventIsTheServersError) {
  api::Pod pod;
  const auto line = WatchLineFromJson(
      R"({"type":"ERROR","object":{"kind":"Status","status":"Failure","message":"too old",)"
      R"("reason":"Expired","code":410}})",
      &pod);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->type, WatchType::kError);
  EXPECT_EQ(line->error.code, ErrorCode::kGone);
  EXPECT_THAT(line->error.message, HasSubstr("too old (410 Expired)"));
}

TEST(WatchLineTest, KeepsTheNameOfWhatItCannotRead) {
  api::Pod pod;
  const auto line = WatchLineFromJson(
      R"({"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n"},"spec":{"priority":{}}}})",
      &pod);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().message, "object.spec.priority: expected an integer, found an object");
  EXPECT_EQ(pod.metadata().name(), "a");
}

TEST(WatchLineTest, RefusesOtherLines) {
  for (const char* text :
       {"", "x", "{}", R"({"type":"ADDED"})", R"({"object":{}})", R"({"type":"NEW","object":{}})",
        R"({"type":"ADDED","object":{"metadata":{}}})", R"({"type":"ADDED","object":[]})",
        R"({"type":"BOOKMARK","object":{}})", R"({"type":"ADDED","object":{"metadata":{"na)"}) {
    api::Pod pod;
    EXPECT_FALSE(WatchLineFromJson(text, &pod)) << text;
  }
}

}  // namespace
}  // namespace bimetal::kube
