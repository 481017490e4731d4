// bimetal-machine as a person and the demo call it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "tests/unit/machines/machine_fixture.h"

namespace bimetal::machines {
namespace {

using testing::HasSubstr;

struct Ended {
  int code = -1;
  std::string output;
};

Ended RunProgram(const std::string& arguments) {
  Ended out;
  FILE* pipe = popen((std::string(BIMETAL_MACHINE) + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.output.append(buffer.data(), n);
  }
  out.code = WEXITSTATUS(pclose(pipe));
  return out;
}

class ProgramTest : public MachineTest {
 protected:
  Ended BuildOne(const std::string& name) {
    return RunProgram("build " BIMETAL_MACHINES "/" + name + ".yaml " + root() + " --node gpu-7");
  }
};

TEST_F(ProgramTest, BuildsInjectsShowsAndClears) {
  EXPECT_EQ(BuildOne("nvidia-h100-8").code, 0);
  EXPECT_EQ(RunProgram("fault " + root() + " --device 2 --kind xid --code 79").code, 0);
  EXPECT_EQ(RunProgram("fault " + root() + " --device 1 --kind vanish").code, 0);
  const auto list = RunProgram("list " + root());
  EXPECT_THAT(list.output, HasSubstr("simulated"));
  EXPECT_THAT(list.output, HasSubstr("fault: device 2 xid"));
  const auto inventory = RunProgram("inventory " + root());
  EXPECT_EQ(inventory.code, 0);
  EXPECT_THAT(inventory.output, HasSubstr("XidFatal"));
  EXPECT_THAT(inventory.output, HasSubstr("DeviceLost"));
  EXPECT_THAT(inventory.output, HasSubstr("simulated"));
  EXPECT_THAT(RunProgram("clear " + root() + " --kind vanish").output, HasSubstr("1 faults"));
  EXPECT_EQ(RunProgram("reboot " + root()).code, 0);
  EXPECT_THAT(RunProgram("inventory " + root()).output, Not(HasSubstr("error")));
}

TEST_F(ProgramTest, RefusesBadArgumentsWithCodeTwo) {
  ASSERT_EQ(BuildOne("amd-mi300x-8").code, 0);
  for (const std::string& arguments :
       {std::string(), std::string("dance"), std::string("build"), "fault " + root(),
        "fault " + root() + " --device 99 --kind hang", "fault " + root() + " --device 1 --kind x",
        "fault " + root() + " --device 1 --kind xid", "fault " + root() + " --device",
        "fault " + root() + " --device -1 --kind hang",
        "fault " + root() + " --device 1 --kind memory --bit 64",
        "fault " + root() + " --device 1 --kind memory --bat 6", "clear " + root() + " --kind x"}) {
    const auto ended = RunProgram(arguments);
    EXPECT_EQ(ended.code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr("bimetal-machine: ")) << arguments;
  }
  EXPECT_EQ(RunProgram("list /no/such/folder").code, 1);
  EXPECT_EQ(RunProgram("build /no/such/file.yaml " + root()).code, 1);
  EXPECT_EQ(Inventory().devices.size(), 8u);
}

// The agent's own way to read: it starts itself as a probe.
TEST_F(ProgramTest, IsAProbeForAnEmptyCommandToo) {
  ASSERT_EQ(BuildOne("amd-mi300x-8").code, 0);
  EXPECT_THAT(RunProgram("inventory " + root()).output, HasSubstr("SPX/NPS1"));
  EXPECT_EQ(RunProgram("--probe banana 3>/dev/null").code, 2);
  EXPECT_EQ(RunProgram("--probe 3>/dev/null").code, 2);
}

}  // namespace
}  // namespace bimetal::machines
