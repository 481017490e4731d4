#include "operator/writer/write_queue.h"

#include <string>

#include <gtest/gtest.h>

namespace bimetal::op {
namespace {

Write Of(const std::string& resource, const std::string& name) {
  return {"create", resource, "team", name, "", {}, {}};
}

std::string NamesOf(WriteQueue& queue) {
  std::string out;
  while (!queue.empty()) out += queue.Pop().name;
  return out;
}

TEST(WriteQueue, PodsGoFirstAndTheOthersAreNotForgotten) {
  WriteQueue queue;
  for (const char* name : {"a", "b", "c"}) queue.Push(Of("gpujobs/status", name));
  for (const char* name : {"1", "2", "3", "4", "5"}) queue.Push(Of("pods", name));
  queue.Push(Of("pods/status", "d"));
  EXPECT_EQ(queue.size(), 9u);
  EXPECT_EQ(NamesOf(queue), "123a45bcd");
}

TEST(WriteQueue, TheServiceOfAGangKeepsItsPlaceBeforeThePods) {
  WriteQueue queue;
  queue.Push(Of("events", "e"));
  queue.Push(Of("services", "s"));
  queue.Push(Of("pods", "p"));
  EXPECT_EQ(NamesOf(queue), "spe");
}

}  // namespace
}  // namespace bimetal::op
