#include "operator/pods/queue_gate.h"

#include <gtest/gtest.h>

namespace bimetal::op {
namespace {

TEST(QueueGateTest, OnePatchTakesTheGateOffPinsThePodAndIsBoundToItsVersion) {
  QueuedPod pod;
  pod.resource_version = "7";
  EXPECT_EQ(
      AdmissionPatch(pod, Uid{"u"}, QueueName{"team"}, NodeName{"n1"}),
      R"({"metadata":{"uid":"u","resourceVersion":"7","annotations":{"bimetal.dev/admitted-to":"team",)"
      R"("bimetal.dev/waiting":null,"bimetal.dev/node":"n1"}},"spec":{"schedulingGates":null,)"
      R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
      R"({"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In",)"
      R"("values":["n1"]}]}]}}}}})");
}

TEST(QueueGateTest, EveryTermOfThePodsAffinityIsKeptAndAnEmptyOneIsNotWidened) {
  QueuedPod pod;
  pod.affinity = {{{{"rack", "Exists", {}}}, {}}, {}};
  const std::string patch = AdmissionPatch(pod, Uid{"u"}, QueueName{"team"}, NodeName{"n1"});
  EXPECT_NE(
      patch.find(R"("nodeSelectorTerms":[{"matchExpressions":[{"key":"rack","operator":"Exists"}],)"
                 R"("matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]},{}])"),
      std::string::npos)
      << patch;
}

TEST(QueueGateTest, APodWithoutDevicesIsNotPinned) {
  const std::string patch = AdmissionPatch({}, Uid{"u"}, QueueName{"team"}, NodeName{});
  EXPECT_EQ(patch.find("affinity"), std::string::npos) << patch;
  EXPECT_EQ(patch.find("bimetal.dev/node"), std::string::npos) << patch;
}

TEST(QueueGateTest, WordsAreSetAndTakenOff) {
  EXPECT_EQ(
      WaitingPatch(Uid{"u"}, "Why: so \"it\" is"),
      R"({"metadata":{"uid":"u","annotations":{"bimetal.dev/waiting":"Why: so \"it\" is"}}})");
  EXPECT_EQ(WaitingPatch(Uid{"u"}, ""),
            R"({"metadata":{"uid":"u","annotations":{"bimetal.dev/waiting":null}}})");
}

}  // namespace
}  // namespace bimetal::op
