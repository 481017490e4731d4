#include "agent/diagnosis/engine.h"

#include <gtest/gtest.h>

namespace bimetal::agent {
namespace {

// code, step, vendor, severity, effect, when, event, replaces, meaning, remedy, link, source, date
std::vector<Rule> OneRule(const std::string& when, const std::string& event = "") {
  std::vector<std::string> bad;
  auto rules = ParseRules("Broken,bus,nvidia,Warning,Cordon," + when + "," + event +
                              ",,it is broken,mend it,a page,a book,2026-11\n",
                          &bad);
  EXPECT_TRUE(bad.empty()) << when;
  return rules;
}

TEST(CompareVersionsTest, ComparesNumbersNotText) {
  EXPECT_LT(CompareVersions("580.9", "580.10"), 0);
  EXPECT_GT(CompareVersions("580.178", "580.173.02"), 0);
  EXPECT_EQ(CompareVersions("6.4", "6.4.0"), 0);
  EXPECT_EQ(CompareVersions("", ""), 0);
  EXPECT_LT(CompareVersions("", "0.1"), 0);
  EXPECT_LT(CompareVersions("99999999999999999999.1", "1.2"), 1);  // no overflow trouble
}

TEST(EvaluateTest, HoldsWhereEveryFactIsKnownAndFits) {
  Observations seen;
  seen.Set("a", "yes", "a was seen");
  seen.Set("n", "10", "ten of n");
  const auto found = Evaluate(OneRule("a=yes; n>9"), seen);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].evidence, "a was seen; ten of n");
  EXPECT_EQ(found[0].effect, Effect::kCordon);
  EXPECT_EQ(found[0].vendor, "nvidia");
  EXPECT_EQ(found[0].event, "");
  EXPECT_TRUE(Evaluate(OneRule("a=yes; n>10"), seen).empty());
  EXPECT_TRUE(Evaluate(OneRule("a!=yes"), seen).empty());
  EXPECT_EQ(Evaluate(OneRule("n<10.1"), seen).size(), 1u);
}

TEST(EvaluateTest, WhatIsNotKnownIsNeitherYesNorNo) {
  Observations seen;
  seen.SetUnknown("a", "cannot be seen");
  for (const char* when : {"a=yes", "a!=yes", "a<1", "a>1", "never_set=yes", "never_set!=yes"}) {
    EXPECT_TRUE(Evaluate(OneRule(when), seen).empty()) << when;
  }
  EXPECT_EQ(Holds({"a", Condition::Op::kEqual, "yes", false}, seen, ""), Answer::kUnknown);
  seen.Set("b", "1");
  EXPECT_TRUE(Evaluate(OneRule("b!=@a"), seen).empty());
}

TEST(EvaluateTest, ComparesFactsWithFacts) {
  Observations seen;
  seen.Set("library", "580.178", "library 580.178");
  seen.Set("driver", "580.173.02", "driver 580.173.02");
  const auto found = Evaluate(OneRule("library!=@driver"), seen);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].evidence, "library 580.178; driver 580.173.02");
  seen.Set("library", "580.173.2");
  EXPECT_TRUE(Evaluate(OneRule("library!=@driver"), seen).empty());
}

TEST(EvaluateTest, AsksEachSubjectAndFallsBackToTheNode) {
  Observations seen;
  seen.Set("vendor", "x");
  seen.SetFor("gpu-1", "errors", "3", "three");
  seen.SetFor("gpu-2", "errors", "0");
  const auto found = Evaluate(OneRule("errors>0; vendor=x", "errors"), seen);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].device, "gpu-1");
  EXPECT_EQ(found[0].event, "errors=3");
}

TEST(ParseRulesTest, RefusesLinesThatDoNotFit) {
  const std::string good = "C,bus,,Info,None,a=b,,,m,r,d,s,2026-11\n";
  EXPECT_EQ(ParseRules(good).size(), 1u);
  for (const char* bad :
       {"C,bus,,Info,None,a=b,,,m,r,d,s\n", "C,attic,,Info,None,a=b,,,m,r,d,s,2026-11\n",
        "C,bus,intel,Info,None,a=b,,,m,r,d,s,2026-11\n", "C,bus,,Bad,None,,,,m,r,d,s,2026-11\n",
        "C,bus,,Info,Kill,,,,m,r,d,s,2026-11\n", "C,bus,,Info,None,a,,,m,r,d,s,2026-11\n",
        "C,bus,,Info,None,a!b,,,m,r,d,s,2026-11\n", "C,bus,,Info,None,=b,,,m,r,d,s,2026-11\n",
        "C,bus,,Info,None,a=,,,m,r,d,s,2026-11\n", "C,bus,,Info,None,,,,,r,d,s,2026-11\n",
        "C,bus,,Info,None,,,,m,r,d,s,yesterday\n", ",bus,,Info,None,,,,m,r,d,s,2026-11\n"}) {
    std::vector<std::string> lines;
    EXPECT_TRUE(ParseRules(bad, &lines).empty()) << bad;
    EXPECT_EQ(lines.size(), 1u) << bad;
  }
}

}  // namespace
}  // namespace bimetal::agent
