#include "operator/controllers/node_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::op {
namespace {

using core::FailureClass;

NodeFailure On(const std::string& node, const std::string& team, const std::string& job,
               FailureClass failure, std::int64_t minute) {
  return {.node = node,
          .vendor = core::Vendor::kAmd,
          .failure = failure,
          .refused = failure == FailureClass::kEvicted,
          .name_space = team,
          .job = job,
          .when = TimePoint{minute * 60'000}};
}

TEST(NodeFailures, OneTeamsBrokenProgramsNeverMakeANodeSuspect) {
  NodeFailures failures({});
  for (int i = 0; i < 40; ++i) {
    EXPECT_FALSE(
        failures.Note(On("n", "team", "job-" + std::to_string(i), FailureClass::kUserError, i)));
  }
}

TEST(NodeFailures, ProgramsOfThreeTeamsDoAndItStartsAnewThen) {
  NodeFailures failures({});
  EXPECT_FALSE(failures.Note(On("n", "a", "x", FailureClass::kUserError, 1)));
  EXPECT_FALSE(failures.Note(On("n", "b", "x", FailureClass::kOutOfMemory, 2)));
  EXPECT_FALSE(failures.Note(On("other", "c", "x", FailureClass::kUserError, 2)));
  const auto suspicion = failures.Note(On("n", "c", "x", FailureClass::kUserError, 3));
  ASSERT_TRUE(suspicion);
  EXPECT_THAT(suspicion->evidence, testing::HasSubstr("b/x (OutOfMemory)"));
  EXPECT_FALSE(failures.Note(On("n", "d", "x", FailureClass::kUserError, 4)));
}

TEST(NodeFailures, WhatTheNodeRefusesCountsByJobAndASuccessDoesNotForgetIt) {
  NodeFailures failures({});
  EXPECT_FALSE(failures.Note(On("n", "a", "x", FailureClass::kEvicted, 1)));
  EXPECT_FALSE(failures.Note(On("n", "a", "x", FailureClass::kEvicted, 1))) << "the same job";
  EXPECT_FALSE(failures.Note(On("n", "a", "y", FailureClass::kEvicted, 2)));
  failures.NoteSuccess("n", core::Vendor::kAmd);
  EXPECT_TRUE(failures.Note(On("n", "a", "z", FailureClass::kEvicted, 3)));
}

TEST(NodeFailures, ASuccessClearsProgramsAndOldFailuresFade) {
  NodeFailures failures({});
  failures.Note(On("n", "a", "x", FailureClass::kUserError, 1));
  failures.Note(On("n", "b", "x", FailureClass::kUserError, 2));
  failures.NoteSuccess("n", core::Vendor::kAmd);
  EXPECT_FALSE(failures.Note(On("n", "c", "x", FailureClass::kUserError, 3)));
  failures.Note(On("n", "d", "x", FailureClass::kUserError, 4));
  EXPECT_FALSE(failures.Note(On("n", "e", "x", FailureClass::kUserError, 65)))
      << "the first is over an hour old";
}

TEST(NodeFailures, PeopleAndQueuesWhoEndAPodSayNothingOfTheNode) {
  NodeFailures failures({});
  for (int i = 0; i < 9; ++i) {
    const std::string team = "t" + std::to_string(i);
    auto evicted = On("n", team, "x", FailureClass::kEvicted, i);
    evicted.refused = false;
    EXPECT_FALSE(failures.Note(evicted));
    EXPECT_FALSE(failures.Note(On("n", team, "x", FailureClass::kPreempted, i)));
    EXPECT_FALSE(failures.Note(On("n", team, "x", FailureClass::kTimeout, i)));
  }
}

}  // namespace
}  // namespace bimetal::op
