// docs/reference/findings.md is the rules, for people. To write it anew:
//   BIMETAL_WRITE_DOCS=1 agent_diagnosis_test --gtest_filter='FindingsPageTest.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "agent/diagnosis/rules.h"

namespace bimetal::agent {
namespace {

constexpr char kBegin[] = "<!-- begin: made from agent/diagnosis/data/rules.csv -->\n";
constexpr char kEnd[] = "<!-- end -->\n";

std::string Cell(std::string text) {
  for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

std::string_view SeverityWord(Severity severity) {
  return severity == Severity::kInfo    ? "Info"
         : severity == Severity::kError ? "Critical"
                                        : "Warning";
}

std::string Conditions(const Rule& rule) {
  std::string out;
  for (const Condition& condition : rule.when) {
    constexpr const char* kOps[] = {"=", "!=", "<", ">"};
    out += (out.empty() ? "`" : "; ") + condition.fact + kOps[static_cast<int>(condition.op)] +
           (condition.value_is_fact ? "@" : "") + condition.value;
  }
  return out.empty() ? out : out + "`";
}

std::string Link(const std::string& page) {
  if (page.starts_with("https://")) return "[vendor](" + page + ")";
  if (page == "docs/how-to/diagnose-a-node.md") return "[how-to](../how-to/diagnose-a-node.md)";
  return "-";
}

std::string Tables() {
  std::string out;
  Step step = Step::kAgent;
  bool first = true;
  for (const Rule& rule : Rules()) {
    if (first || rule.step != step) {
      step = rule.step;
      bool again = false;
      for (const Rule& earlier : Rules()) {
        if (&earlier == &rule) break;
        again = again || earlier.step == step;
      }
      out += "\n### " + std::string(StepName(step)) + (again ? " (more)" : "") +
             "\n\n| code | severity | effect | vendor | means | what to do | when | more |\n"
             "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
      first = false;
    }
    out += "| `" + rule.code + "` | " + std::string(SeverityWord(rule.severity)) + " | " +
           std::string(EffectName(rule.effect)) + " | " +
           (rule.vendor.empty() ? "-" : rule.vendor) + " | " + Cell(rule.meaning) + " | " +
           Cell(rule.remedy) + " | " + Cell(Conditions(rule)) + " | " + Link(rule.documentation) +
           " |\n";
  }
  return out;
}

TEST(FindingsPageTest, IsTheRules) {
  const char* source = std::getenv("BIMETAL_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::string path = std::string(source) + "/docs/reference/findings.md";
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  const std::string page = text.str();
  const auto begin = page.find(kBegin);
  const auto end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const auto from = begin + std::string(kBegin).size();
  if (std::getenv("BIMETAL_WRITE_DOCS") != nullptr) {
    std::ofstream(path) << page.substr(0, from) << Tables() << "\n" << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(from, end - from), Tables() + "\n")
      << "write it anew with BIMETAL_WRITE_DOCS=1";
}

}  // namespace
}  // namespace bimetal::agent
