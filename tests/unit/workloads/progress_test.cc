#include "workloads/program/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace bimetal::workloads {
namespace {

TEST(ProgressTest, AppendsOneLineAStep) {
  const std::string path = testing::TempDir() + "/bimetal_progress_test";
  std::remove(path.c_str());
  {
    Progress progress(path);
    progress.Step(1);
    progress.Step(2);
  }
  Progress(path).Step(3);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), testing::MatchesRegex("\\{\"time\":[0-9]+,\"step\":1\\}\n"
                                                "\\{\"time\":[0-9]+,\"step\":2\\}\n"
                                                "\\{\"time\":[0-9]+,\"step\":3\\}\n"));
}

TEST(ProgressTest, UnwritableFileIsSaidOnce) {
  Progress progress("/nonexistent/progress");
  testing::internal::CaptureStderr();
  progress.Step(1);
  progress.Step(2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "progress file /nonexistent/progress: No such file or directory; no progress is "
            "reported\n");
}

}  // namespace
}  // namespace bimetal::workloads
