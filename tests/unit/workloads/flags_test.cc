#include "workloads/program/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::workloads {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::vector<std::string>& arguments) {
  auto parsed = ParseWorkloadFlags(arguments);
  const auto* error = std::get_if<UsageError>(&parsed);
  return error == nullptr ? "" : error->message;
}

TEST(WorkloadFlagsTest, TakesValuesInBothForms) {
  auto parsed = ParseWorkloadFlags({"exchange", "--rounds=3", "--seconds", "2", "--values", "8",
                                    "--join-timeout", "9", "--round-timeout=4"});
  const auto& options = std::get<WorkloadOptions>(parsed);
  EXPECT_EQ(options.action, WorkloadOptions::Action::kExchange);
  EXPECT_EQ(options.rounds, 3u);
  EXPECT_EQ(options.seconds, 2u);
  EXPECT_EQ(options.values, 8u);
  EXPECT_EQ(options.join_timeout, std::chrono::seconds(9));
  EXPECT_EQ(options.round_timeout, std::chrono::seconds(4));
}

TEST(WorkloadFlagsTest, EveryBadArgumentIsNamed) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("a command is needed"));
  EXPECT_THAT(ErrorOf({"train"}), HasSubstr("unknown command train"));
  EXPECT_THAT(ErrorOf({"exchange", "--frob"}), HasSubstr("unknown flag --frob for exchange"));
  EXPECT_THAT(ErrorOf({"sleep", "--rounds", "3"}), HasSubstr("unknown flag --rounds for sleep"));
  EXPECT_THAT(ErrorOf({"env", "--seconds", "3"}), HasSubstr("unknown flag --seconds for env"));
  for (const char* target : {"", "host", ":80", "host:", "host:0", "host:99999", "host:80x"}) {
    EXPECT_THAT(ErrorOf({"ask", "--target", target}), HasSubstr("--target HOST:PORT")) << target;
  }
  EXPECT_THAT(ErrorOf({"serve", "--seconds", "3"}), HasSubstr("unknown flag --seconds for serve"));
  EXPECT_THAT(ErrorOf({"sleep", "--port", "3"}), HasSubstr("unknown flag --port for sleep"));
  EXPECT_THAT(ErrorOf({"serve", "--port", "65536"}), HasSubstr("--port must be"));
  EXPECT_THAT(ErrorOf({"exchange", "--rounds"}), HasSubstr("--rounds needs a value"));
  EXPECT_THAT(ErrorOf({"exchange", "--rounds", "0"}), HasSubstr("--rounds must be"));
  EXPECT_THAT(ErrorOf({"sleep", "--seconds", "1.5"}), HasSubstr("--seconds must be"));
  EXPECT_THAT(ErrorOf({"exchange", "--values", "99999999"}), HasSubstr("--values must be"));
}

}  // namespace
}  // namespace bimetal::workloads
