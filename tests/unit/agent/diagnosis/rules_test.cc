// The rules as data: every line fits, every code that anything emits is a rule.
#include "agent/diagnosis/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "agent/devices/kernel_log.h"
#include "agent/diagnosis/csv.h"

namespace bimetal::agent {
namespace {

using testing::IsEmpty;

TEST(RulesTest, EveryLineFits) {
  std::vector<std::string> bad;
  const auto rules = ParseRules(RulesCsv(), &bad);
  EXPECT_THAT(bad, IsEmpty());
  EXPECT_GT(rules.size(), 90u);
  EXPECT_EQ(ParseKernelLineRules(KernelLinesCsv()).size(), CsvLines(KernelLinesCsv()).size());
}

// One code has one meaning: its rows, one for each vendor or condition, agree on how grave it is.
TEST(RulesTest, RowsOfOneCodeAgree) {
  std::map<std::string, const Rule*> first;
  for (const Rule& rule : Rules()) {
    const auto [at, added] = first.emplace(rule.code, &rule);
    if (added) continue;
    EXPECT_EQ(at->second->severity, rule.severity) << rule.code;
    EXPECT_EQ(at->second->effect, rule.effect) << rule.code;
    EXPECT_EQ(at->second->step, rule.step) << rule.code;
    EXPECT_FALSE(at->second->when.empty()) << rule.code << " has two rows without a condition";
  }
}

TEST(RulesTest, ReplacesOnlyCodesThatExist) {
  for (const Rule& rule : Rules()) {
    for (const std::string& code : rule.replaces) {
      EXPECT_NE(FindRule(code), nullptr) << rule.code << " replaces " << code;
    }
    EXPECT_TRUE(rule.documentation.starts_with("https://") ||
                rule.documentation.starts_with("docs/"))
        << rule.code;
  }
}

TEST(RulesTest, EveryCodeOfTheKernelLogIsARule) {
  for (const auto& line : ParseKernelLineRules(KernelLinesCsv())) {
    if (line.code[0] >= 'a' && line.code[0] <= 'z') continue;
    EXPECT_NE(FindRule(line.code), nullptr) << line.code;
  }
  for (const char* code : {"XidFatal", "XidContained", "XidLink", "XidLinkFatal", "XidRecovery",
                           "XidApplication", "GpuResetHung"}) {
    EXPECT_NE(FindRule(code), nullptr) << code;
  }
}

// A finding without a rule would have no effect, no page and no place in the stack.
TEST(RulesTest, EveryCodeThatTheAgentEmitsIsARule) {
  const char* source = std::getenv("BIMETAL_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::regex emitted(
      R"re((?:Add\(|MakeFinding\(|Plain\(|push_back\(\s*\{|return \{|set_code\(|\.code = )\s*(?:hung \? )?"([A-Z][A-Za-z]+)")re");
  std::set<std::string> codes;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(source) + "/agent")) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    for (std::sregex_iterator it(all.begin(), all.end(), emitted), end; it != end; ++it) {
      codes.insert((*it)[1]);
    }
  }
  EXPECT_GT(codes.size(), 25u);
  for (const std::string& code : codes) EXPECT_NE(FindRule(code), nullptr) << code;
}

TEST(ApplyRuleTest, FillsWhatTheReaderLeft) {
  Finding finding;
  finding.code = "DeviceLost";
  finding.vendor = "amd";
  finding.remedy = "look under the table";
  ApplyRule(finding);
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.effect, Effect::kCordon);
  EXPECT_EQ(finding.vendor, "amd");
  EXPECT_EQ(finding.remedy, "look under the table");
  EXPECT_FALSE(finding.documentation.empty());
  Finding other;
  other.code = "OfNoRule";
  other.severity = Severity::kInfo;
  const Finding before = other;
  ApplyRule(other);
  EXPECT_EQ(other, before);
}

}  // namespace
}  // namespace bimetal::agent
