// The checks themselves must be able to fail.
#include "tests/unit/house/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bimetal::house {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> IncludesOf(const std::string& path, const std::string& name) {
  return CheckIncludes(File{path, "#pragma once\n#include \"" + name + "\"\n"});
}

TEST(IncludeCheckTest, FindsWhatTheTableForbids) {
  EXPECT_THAT(IncludesOf("kube/client/a.cc", "core/queue/cycle.h"),
              ElementsAre(HasSubstr("which kube may not use")));
  EXPECT_THAT(IncludesOf("core/queue/a.cc", "kube/client/client.h"), Not(IsEmpty()));
  EXPECT_THAT(IncludesOf("kernels/run/a.cc", "core/base/result.h"), Not(IsEmpty()));
  EXPECT_THAT(IncludesOf("workloads/net/a.cc", "kernels/run/run.h"), Not(IsEmpty()));
  EXPECT_THAT(IncludesOf("agent/run/a.cc", "core/placement/gang.h"), Not(IsEmpty()));
  EXPECT_THAT(IncludesOf("operator/loop/a.cc", "grpcpp/grpcpp.h"),
              ElementsAre(HasSubstr("gRPC has no place there")));
  EXPECT_THAT(IncludesOf("operator/loop/a.cc", "api/agent.grpc.pb.h"), Not(IsEmpty()));
  EXPECT_THAT(IncludesOf("operator/loop/a.cc", "gtest/gtest.h"), Not(IsEmpty()));
  EXPECT_THAT(IncludesOf("operator/loop/a.cc", "absl/time/time.h"),
              ElementsAre(HasSubstr("no line of the table knows")));
}

TEST(IncludeCheckTest, LeavesWhatTheTableAllows) {
  EXPECT_THAT(IncludesOf("kube/client/a.cc", "core/base/result.h"), IsEmpty());
  EXPECT_THAT(IncludesOf("operator/agents/a.cc", "grpcpp/grpcpp.h"), IsEmpty());
  EXPECT_THAT(IncludesOf("agent/state/a.cc", "agent/state/saved_state.pb.h"), IsEmpty());
  EXPECT_THAT(IncludesOf("core/queue/a.cc", "map"), IsEmpty());
}

TEST(PurityCheckTest, FindsImpureWordsInCodeOnly) {
  const auto purity = [](const std::string& path, const std::string& text) {
    return CheckPurity(File{path, text});
  };
  EXPECT_THAT(purity("core/queue/a.cc", "#include <thread>\n"), Not(IsEmpty()));
  EXPECT_THAT(purity("core/queue/a.cc", "std::unordered_map<int, int> m;"), Not(IsEmpty()));
  EXPECT_THAT(purity("core/queue/a.cc", "return std::getenv(\"X\");"), Not(IsEmpty()));
  EXPECT_THAT(purity("core/base/log.cc", "#include <chrono>\n"), Not(IsEmpty()));
  EXPECT_THAT(purity("core/base/time.cc", "#include <chrono>\n"), IsEmpty());
  EXPECT_THAT(purity("core/cost/a.cc", "double x = 1'000;"), Not(IsEmpty()));
  EXPECT_THAT(purity("core/cost/a.cc", "// a double price\nconst char* s = \"float\";\n"),
              IsEmpty());
  EXPECT_THAT(purity("core/cost/a.cc", "int threads = 1; bool doubled = false;"), IsEmpty());
  EXPECT_THAT(purity("operator/loop/a.cc", "#include <thread>\n"), IsEmpty());
}

TEST(LinkCheckTest, FindsWhatTheTableForbids) {
  const std::vector<File> lists = {
      {"core/CMakeLists.txt",
       "bimetal_library(core_base SOURCES base/log.cc)\n"
       "bimetal_library(core SOURCES ${core_sources} DEPS bimetal::core_base)\n"},
      {"kube/CMakeLists.txt",
       "# bimetal::nothing\n"
       "bimetal_library(kube_config SOURCES config/a.cc DEPS bimetal::core_base\n"
       "                PRIVATE_DEPS yaml-cpp)\n"
       "bimetal_library(kube SOURCES client/a.cc DEPS bimetal::core yaml-cpp bimetal::gone)\n"}};
  const Libraries libraries = FindLibraries(lists);
  EXPECT_EQ(libraries.at("core_base"), "core/base");
  EXPECT_THAT(CheckLinks(lists[0], libraries), IsEmpty());
  EXPECT_THAT(CheckLinks(lists[1], libraries),
              ElementsAre(HasSubstr("links bimetal::core of core/model, which it may not use"),
                          HasSubstr("yaml-cpp has no place in kube/client"),
                          HasSubstr("bimetal::gone, which no CMakeLists.txt defines")));
}

TEST(ScanTest, ReadsIncludesCodeAndCalls) {
  EXPECT_THAT(Includes("#include <a>\n  # include \"b/c.h\"\n// #include <d>\n"),
              ElementsAre("a", "b/c.h"));
  EXPECT_EQ(CodeOnly("a(\"x\\\"y\", 'q'); // b\n/* c */d 1'000"), "a(\"\", ''); \n d 1'000");
  const auto calls = Calls("f(a b # c )\n  \"d e\")\ng()");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_THAT(calls[0].arguments, ElementsAre("a", "b", "d e"));
}

}  // namespace
}  // namespace bimetal::house
