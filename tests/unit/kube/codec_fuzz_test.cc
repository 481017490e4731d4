// Random and damaged documents: what the codec reads agrees with another parser, and nothing
// crashes. Worth most under the address sanitizer.
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/gpujob.pb.h"
#include "api/kubernetes.pb.h"
#include "kube/codec/codec.h"

namespace bimetal::kube {
namespace {

using Json = nlohmann::ordered_json;

std::string RandomText(std::mt19937& random) {
  static const char* const kPieces[] = {
      "a", "/", "\"", "\\", "\n", "\x01", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
      "{", "]", ",",  ":"};
  std::string text;
  for (auto i = random() % 8; i > 0; --i) text += kPieces[random() % std::size(kPieces)];
  return text;
}

Json RandomPod(std::mt19937& random) {
  Json pod = {{"metadata", {{"name", "p" + RandomText(random)}, {"generation", random()}}}};
  for (auto i = random() % 4; i > 0; --i) {
    pod["metadata"]["labels"]["k" + std::to_string(i) + RandomText(random)] = RandomText(random);
    pod["metadata"]["unknown" + std::to_string(i)] = {{"x", {1, nullptr, RandomText(random)}}};
  }
  for (auto i = random() % 3; i > 0; --i) {
    pod["spec"]["containers"].push_back(
        {{"name", RandomText(random)}, {"command", {RandomText(random), RandomText(random)}}});
  }
  if (random() % 2 == 0) pod["spec"]["priority"] = static_cast<std::int32_t>(random());
  return pod;
}

TEST(CodecFuzzTest, AgreesWithAnotherParser) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const Json want = RandomPod(random);
    api::Pod pod;
    const Status status = FromJson(want.dump(round % 3 == 0 ? 2 : -1), &pod);
    ASSERT_TRUE(status) << status.error().message << "\n" << want.dump();
    ASSERT_EQ(pod.metadata().name(), want["metadata"]["name"].get<std::string>());
    ASSERT_EQ(pod.metadata().generation(), want["metadata"]["generation"].get<std::int64_t>());
    const Json labels = want["metadata"].value("labels", Json::object());
    ASSERT_EQ(pod.metadata().labels().size(), labels.size());
    for (const auto& [key, value] : labels.items()) {
      ASSERT_EQ(pod.metadata().labels().at(key), value.get<std::string>());
    }
    // What we write is JSON to the other parser, and the same to us.
    const std::string written = ToJson(pod);
    ASSERT_TRUE(Json::accept(written)) << written;
    api::Pod again;
    ASSERT_TRUE(FromJson(written, &again));
    ASSERT_EQ(ToJson(again), written);
  }
}

const std::string& Sample() {
  static const std::string text =
      R"({"metadata":{"name":"j","labels":{"a":"\u20ac\ud83d\ude00"},"generation":12},"spec":{)"
      R"("queueName":"q","suspend":true,"variants":[{"name":"v","vendor":"amd","devicesPerPod":8,)"
      R"("env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}],"roles":[{"replicas":4,)"
      R"("template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":1.5}}}]}}}]}})";
  return text;
}

TEST(CodecFuzzTest, EveryCutOfADocumentIsAnError) {
  for (std::size_t cut = 0; cut < Sample().size(); ++cut) {
    api::GPUJob job;
    const Status status = FromJson(Sample().substr(0, cut), &job);
    ASSERT_FALSE(status) << "accepted a cut at " << cut;
    ASSERT_EQ(status.error().code, ErrorCode::kData);
  }
}

TEST(CodecFuzzTest, DamagedDocumentsNeverCrash) {
  std::mt19937 random(11);
  int accepted = 0;
  for (int round = 0; round < 8000; ++round) {
    std::string text = Sample();
    for (auto i = 1 + random() % 3; i > 0; --i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        case 2:
          text.insert(at, 1, "{}[]\",:0-e"[random() % 10]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
      }
      if (text.empty()) text = "x";
    }
    api::GPUJob job;
    if (FromJson(text, &job)) ++accepted;
    api::Pod pod;
    static_cast<void>(FromJson(text, &pod));
    static_cast<void>(WatchLineFromJson(text, &pod));
    static_cast<void>(ErrorFromAnswer(500, "", "", text, "fuzz"));
  }
  // Damage inside texts and unknown parts is not noticed, and must not be; most damage is.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 4000);
}

}  // namespace
}  // namespace bimetal::kube
