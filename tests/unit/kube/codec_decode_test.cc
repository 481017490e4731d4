#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/gpujob.pb.h"
#include "api/gpunode.pb.h"
#include "api/kubernetes.pb.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"

namespace bimetal::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
T Decode(std::string_view json) {
  T out;
  const Status status = FromJson(json, &out);
  EXPECT_TRUE(status) << status.error().message;
  return out;
}

template <class T>
std::string DecodeError(std::string_view json) {
  T out;
  const Status status = FromJson(json, &out);
  EXPECT_FALSE(status) << "accepted: " << json;
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kData);
  return status.error().message;
}

TEST(CodecDecodeTest, ReadsNestedFieldsByTheirJsonNames) {
  const auto pod = Decode<api::Pod>(R"({
    "kind": "Pod", "apiVersion": "v1",
    "metadata": {"name": "p0", "namespace": "train", "uid": "u1", "resourceVersion": "12",
                 "generation": 3, "managedFields": [{"fieldsV1": {"f:x": {".": {}}}}],
                 "labels": {"a/b": "c", "": "empty key"},
                 "ownerReferences": [{"kind": "GPUJob", "name": "j", "uid": "u0",
                                      "controller": true}]},
    "spec": {"nodeName": "n1", "priority": 0, "containers": [{"name": "c", "image": "i"}]},
    "status": {"podIP": "10.0.0.1", "containerStatuses": [
       {"name": "c", "ready": true, "restartCount": 2, "imageID": "sha256:1",
        "state": {"terminated": {"exitCode": 137, "signal": 9}}}]}})");
  EXPECT_EQ(pod.metadata().name(), "p0");
  EXPECT_EQ(pod.metadata().generation(), 3);
  EXPECT_EQ(pod.metadata().labels().at("a/b"), "c");
  EXPECT_TRUE(pod.metadata().owner_references(0).controller());
  EXPECT_TRUE(pod.spec().has_priority());
  EXPECT_EQ(pod.spec().priority(), 0);
  EXPECT_EQ(pod.status().pod_ip(), "10.0.0.1");
  EXPECT_EQ(pod.status().container_statuses(0).image_id(), "sha256:1");
  EXPECT_EQ(pod.status().container_statuses(0).state().terminated().exit_code(), 137);
}

TEST(CodecDecodeTest, NullIsAbsentEverywhere) {
  const auto pod = Decode<api::Pod>(
      R"({"metadata":{"name":null,"labels":null,"finalizers":null,"generation":null},
          "spec":null,"status":{"conditions":null}})");
  EXPECT_EQ(pod.metadata().name(), "");
  EXPECT_TRUE(pod.metadata().labels().empty());
  EXPECT_FALSE(pod.has_spec());
  EXPECT_EQ(pod.status().conditions_size(), 0);
}

TEST(CodecDecodeTest, NullInsideAListOrMapKeepsItsPlace) {
  const auto pod = Decode<api::Pod>(
      R"({"metadata":{"finalizers":["a",null,"b"],"labels":{"x":null}},
          "spec":{"containers":[null,{"name":"c"}]}})");
  EXPECT_THAT(pod.metadata().finalizers(), ElementsAre("a", "", "b"));
  EXPECT_EQ(pod.metadata().labels().at("x"), "");
  ASSERT_EQ(pod.spec().containers_size(), 2);
  EXPECT_EQ(pod.spec().containers(1).name(), "c");
}

TEST(CodecDecodeTest, QuantitiesMayBeNumbers) {
  const auto node = Decode<api::Node>(
      R"({"status":{"capacity":{"cpu":8,"memory":"16Gi","nvidia.com/gpu":"8","x": 0.5 }}})");
  EXPECT_EQ(node.status().capacity().at("cpu"), "8");
  EXPECT_EQ(node.status().capacity().at("memory"), "16Gi");
  EXPECT_EQ(node.status().capacity().at("x"), "0.5");
}

TEST(CodecDecodeTest, AnArrayStandsForAMessageOfItems) {
  const auto review = Decode<api::TokenReview>(
      R"({"status":{"authenticated":true,"user":{"username":"u","extra":
          {"authentication.kubernetes.io/node-name":["n1","n2"],"empty":null}}}})");
  const auto& extra = review.status().user().extra();
  EXPECT_THAT(extra.at("authentication.kubernetes.io/node-name").items(), ElementsAre("n1", "n2"));
  EXPECT_EQ(extra.at("empty").items_size(), 0);
}

TEST(CodecDecodeTest, RawKeepsTheTextOfItsObjectUnknownFieldsIncluded) {
  const std::string container =
      R"({ "name": "c", "securityContext": {"runAsUser": 1000}, "big": 123456789012345678901 })";
  const auto job =
      Decode<api::GPUJob>(R"({"spec":{"roles":[{"name":"w","template":{"spec":{"containers":[)" +
                          container + R"(],"hostIPC":true}}}]}})");
  const auto& spec = job.spec().roles(0).template_().spec();
  EXPECT_EQ(spec.containers(0).raw(), container);
  EXPECT_EQ(spec.containers(0).name(), "c");
  EXPECT_EQ(spec.raw(), R"({"containers":[)" + container + R"(],"hostIPC":true})");
}

TEST(CodecDecodeTest, AKeyNamedRawIsNotTheRawField) {
  const auto job =
      Decode<api::GPUJob>(R"({"spec":{"variants":[{"env":[{"name":"A","raw":"evil"}]}]}})");
  EXPECT_EQ(job.spec().variants(0).env(0).raw(), R"({"name":"A","raw":"evil"})");
}

TEST(CodecDecodeTest, TheLastOfEqualKeysCounts) {
  const auto pod = Decode<api::Pod>(
      R"({"metadata":{"name":"a","finalizers":["x"],"labels":{"k":"1","k":"2"}},
          "metadata":{"name":"b","finalizers":["y"],"labels":{"k":"3","k":"4"}}})");
  EXPECT_EQ(pod.metadata().name(), "b");
  EXPECT_THAT(pod.metadata().finalizers(), ElementsAre("y"));
  EXPECT_EQ(pod.metadata().labels().at("k"), "4");
}

TEST(CodecDecodeTest, WholeNumbersMayBeWrittenAsReals) {
  EXPECT_EQ(Decode<api::Pod>(R"({"metadata":{"generation":2.0}})").metadata().generation(), 2);
  EXPECT_EQ(Decode<api::Pod>(R"({"metadata":{"generation":1e3}})").metadata().generation(), 1000);
  EXPECT_EQ(Decode<api::Pod>(R"({"metadata":{"generation":9223372036854775807}})")
                .metadata()
                .generation(),
            INT64_MAX);
}

TEST(CodecDecodeTest, ErrorsCarryThePath) {
  EXPECT_EQ(DecodeError<api::GPUJob>(R"({"spec":{"roles":[{"replicas":"two"}]}})"),
            "spec.roles[0].replicas: expected an integer, found a string");
  EXPECT_EQ(DecodeError<api::Pod>(R"({"metadata":{"labels":{"a.b/c":7}}})"),
            R"(metadata.labels["a.b/c"]: expected a string, found a number)");
  EXPECT_EQ(DecodeError<api::Pod>(R"({"spec":{"containers":{}}})"),
            "spec.containers: expected an array, found an object");
  EXPECT_EQ(DecodeError<api::Pod>(R"({"spec":[]})"), "spec: expected an object, found an array");
  EXPECT_EQ(DecodeError<api::Pod>(R"({"spec":{"priority":1.5}})"),
            "spec.priority: expected an integer, found a fraction");
  EXPECT_EQ(DecodeError<api::Pod>(R"({"spec":{"priority":2147483648}})"),
            "spec.priority: integer out of range");
  EXPECT_THAT(DecodeError<api::Pod>(R"({"metadata":{"generation":9223372036854775808}})"),
              HasSubstr("metadata.generation: "));
  EXPECT_EQ(DecodeError<api::Pod>("[]"), "expected an object, found an array");
}

TEST(CodecDecodeTest, RefusesWhatIsNotOneWholeDocument) {
  for (const char* text :
       {"", " ", "{", "}", R"({"metadata":{"name":"a")", R"({"metadata":{)", "{} {}", "{}x", "null",
        "7", R"("text")", "<html></html>", "{\"metadata\":{\"name\":\"\xFF\"}}",
        R"({"metadata":{"name":nul}})", R"({"metadata":{"name":"\ud800"}})"}) {
    EXPECT_NE(DecodeError<api::Pod>(text), "") << text;
  }
}

TEST(CodecDecodeTest, RefusesRawTextThatIsNestedTooDeeply) {
  const std::string deep(200, '[');
  const std::string shut(200, ']');
  EXPECT_THAT(
      DecodeError<api::GPUJob>(R"({"spec":{"variants":[{"env":[{"x":)" + deep + shut + "}]}]}}"),
      HasSubstr("spec.variants[0].env[0]: nested too deeply"));
  // Elsewhere unknown depth is skipped without recursion.
  const std::string very(100'000, '[');
  const std::string very_shut(100'000, ']');
  Decode<api::Pod>(R"({"unknown":)" + very + very_shut + "}");
}

TEST(CodecDecodeTest, DropsTheOldContentOfTheMessage) {
  api::Pod pod;
  pod.mutable_metadata()->set_name("old");
  ASSERT_TRUE(FromJson("{}", &pod));
  EXPECT_EQ(pod.metadata().name(), "");
}

TEST(CodecAnswerTest, MapsStatusAndReasonToCodes) {
  const auto code = [](int http, const std::string& reason) {
    return ErrorFromAnswer(http, "application/json", "",
                           R"({"kind":"Status","status":"Failure","message":"m","reason":")" +
                               reason + R"(","code":)" + std::to_string(http) + "}",
                           "do it")
        .code;
  };
  EXPECT_EQ(code(400, "BadRequest"), ErrorCode::kInvalid);
  EXPECT_EQ(code(401, "Unauthorized"), ErrorCode::kUnauthorized);
  EXPECT_EQ(code(403, "Forbidden"), ErrorCode::kForbidden);
  EXPECT_EQ(code(404, "NotFound"), ErrorCode::kNotFound);
  EXPECT_EQ(code(409, "AlreadyExists"), ErrorCode::kAlreadyExists);
  EXPECT_EQ(code(409, "Conflict"), ErrorCode::kConflict);
  EXPECT_EQ(code(410, "Expired"), ErrorCode::kGone);
  EXPECT_EQ(code(422, "Invalid"), ErrorCode::kInvalid);
  EXPECT_EQ(code(429, "TooManyRequests"), ErrorCode::kTooManyRequests);
  EXPECT_EQ(code(500, "InternalError"), ErrorCode::kUnavailable);
  EXPECT_EQ(code(504, "Timeout"), ErrorCode::kDeadline);
  EXPECT_EQ(code(302, ""), ErrorCode::kUnsupported);
}

TEST(CodecAnswerTest, TellsAForeignPageFromAnApiServer) {
  const Error error =
      ErrorFromAnswer(502, "text/html", "", "<html>\nBad \xFFGateway</html>", "list pods");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message,
            "list pods: the answer is not from an API server (502, text/html): "
            "<html> Bad \xEF\xBF\xBDGateway</html>");
}

TEST(CodecAnswerTest, KeepsTheServersWish) {
  EXPECT_EQ(ErrorFromAnswer(429, "text/plain", "5", "slow down", "list pods").retry_after_ms, 5000);
  EXPECT_EQ(ErrorFromAnswer(500, "application/json", "",
                            R"({"status":"Failure","details":{"retryAfterSeconds":2}})", "x")
                .retry_after_ms,
            2000);
  EXPECT_EQ(ErrorFromAnswer(429, "", "tomorrow", "", "x").retry_after_ms, 0);
  EXPECT_EQ(ErrorFromAnswer(429, "", "-1", "", "x").retry_after_ms, 0);
}

}  // namespace
}  // namespace bimetal::kube
