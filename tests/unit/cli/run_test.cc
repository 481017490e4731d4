#include "cli/run.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

Surroundings Nowhere() {
  return {"", "", [](const std::string&) { return false; }};
}

TEST(RunCommand, VersionAndHelpNeedNoCluster) {
  CommandLine line;
  line.command = Command::kVersion;
  const auto version = RunCommand(line, Nowhere(), "bimetal", SystemClock());
  ASSERT_TRUE(version);
  EXPECT_TRUE(version->out.starts_with("bimetal 0.") || version->out.starts_with("bimetal 1."))
      << version->out;
  line.output = Output::kJson;
  EXPECT_TRUE(
      RunCommand(line, Nowhere(), "bimetal", SystemClock())->out.starts_with("{\"version\":\""));
  line.command = Command::kHelp;
  EXPECT_TRUE(RunCommand(line, Nowhere(), "bimetal", SystemClock()));
}

TEST(RunCommand, AServerThatIsNotThereIsAnErrorWithItsAddressAndTheRemedy) {
  CommandLine line;
  line.command = Command::kNodes;
  line.kubeconfig = testing::TempDir() + "bimetal_cli_run_test";
  FILE* file = std::fopen(line.kubeconfig.c_str(), "w");
  ASSERT_NE(file, nullptr);
  // Port 1 of loopback: nobody listens.
  std::fputs(R"({"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],)"
             R"("clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]})",
             file);
  std::fclose(file);
  const auto answer = RunCommand(line, Nowhere(), "bimetal", SystemClock());
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("gpunodes"), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find("address in the kubeconfig"), std::string::npos)
      << answer.error().message;
}

TEST(WithRemedy, SaysWhatToDoNext) {
  CommandLine line;
  line.command = Command::kExplain;
  const auto message = [&](ErrorCode code) {
    return WithRemedy({code, "get gpujobs team/x: no"}, line, "gpujobs", "kubectl bimetal").message;
  };
  EXPECT_EQ(message(ErrorCode::kNotFound),
            "get gpujobs team/x: no; kubectl bimetal jobs -A shows which jobs there are");
  EXPECT_EQ(
      message(ErrorCode::kForbidden),
      "get gpujobs team/x: no; ask an administrator for the right to get gpujobs.bimetal.dev");
  line.command = Command::kJobs;
  EXPECT_EQ(message(ErrorCode::kForbidden),
            "get gpujobs team/x: no; ask an administrator for the right to list "
            "gpujobs.bimetal.dev");
  EXPECT_EQ(message(ErrorCode::kNotFound),
            "get gpujobs team/x: no; is Bimetal installed on this cluster?");
}

}  // namespace
}  // namespace bimetal::cli
