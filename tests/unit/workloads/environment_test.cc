#include "workloads/program/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace bimetal::workloads {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

kernels::Outcome<GangPlace> PlaceOf(const Variables& variables) {
  return PlaceFromEnvironment([variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

const Variables kGang = {{"RANK", "2"},
                         {"WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "j-0.j"},
                         {"MASTER_PORT", "29500"},
                         {"BIMETAL_JOB_UID", "u"},
                         {"BIMETAL_ATTEMPT", "3"}};

std::string ErrorWith(const std::string& name, const std::string& value) {
  Variables variables = kGang;
  variables[name] = value;
  const auto place = PlaceOf(variables);
  return place.ok() ? "" : place.error().message;
}

TEST(PlaceFromEnvironmentTest, ReadsWhatTheOperatorSets) {
  const auto place = PlaceOf(kGang);
  ASSERT_TRUE(place.ok()) << place.error().message;
  EXPECT_EQ(place.value().rank, 2u);
  EXPECT_EQ(place.value().world, 4u);
  EXPECT_EQ(place.value().master_host, "j-0.j");
  EXPECT_EQ(place.value().master_port, 29500);
  EXPECT_EQ(place.value().session, "u/3");
}

TEST(PlaceFromEnvironmentTest, NothingSetIsAGangOfOne) {
  const auto place = PlaceOf({});
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place.value().world, 1u);
}

TEST(PlaceFromEnvironmentTest, NamesTheVariableThatIsWrong) {
  EXPECT_THAT(ErrorWith("RANK", "4"), HasSubstr("RANK='4' must be a whole number from 0 to 3"));
  EXPECT_THAT(ErrorWith("RANK", ""), HasSubstr("RANK=''"));
  EXPECT_THAT(ErrorWith("RANK", "-1"), HasSubstr("RANK='-1'"));
  EXPECT_THAT(ErrorWith("WORLD_SIZE", "0"), HasSubstr("WORLD_SIZE='0'"));
  EXPECT_THAT(ErrorWith("WORLD_SIZE", "4x"), HasSubstr("WORLD_SIZE='4x'"));
  EXPECT_THAT(ErrorWith("MASTER_PORT", "65536"), HasSubstr("MASTER_PORT='65536'"));
  EXPECT_THAT(ErrorWith("MASTER_ADDR", ""), HasSubstr("MASTER_ADDR"));
}

TEST(RelevantVariablesTest, ListsOursSortedAndNoSecret) {
  const char* const environment[] = {"PATH=/bin",
                                     "WORLD_SIZE=4",
                                     "RANK=1",
                                     "RANKLE=1",
                                     "BIMETAL_VARIANT=cuda",
                                     "BIMETAL_API_TOKEN=x",
                                     "NVIDIA_VISIBLE_DEVICES=GPU-1",
                                     "ROCR_VISIBLE_DEVICES=0",
                                     "NCCL_DEBUG=INFO",
                                     nullptr};
  EXPECT_THAT(RelevantVariables(environment),
              ElementsAre("BIMETAL_VARIANT=cuda", "NCCL_DEBUG=INFO", "NVIDIA_VISIBLE_DEVICES=GPU-1",
                          "RANK=1", "ROCR_VISIBLE_DEVICES=0", "WORLD_SIZE=4"));
}

}  // namespace
}  // namespace bimetal::workloads
