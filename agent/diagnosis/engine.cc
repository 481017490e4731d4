#include "agent/diagnosis/engine.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace bimetal::agent {
namespace {

bool IsVersion(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Takes the number up to the next dot off the front; 0 where there is none.
unsigned long TakeNumber(std::string_view& text) {
  const auto dot = text.find('.');
  const std::string_view word = text.substr(0, dot);
  unsigned long value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  return value;
}

bool Compare(Condition::Op op, const std::string& left, const std::string& right) {
  const int order =
      IsVersion(left) && IsVersion(right) ? CompareVersions(left, right) : left.compare(right);
  switch (op) {
    case Condition::Op::kEqual:
      return order == 0;
    case Condition::Op::kNotEqual:
      return order != 0;
    case Condition::Op::kLess:
      return order < 0;
    case Condition::Op::kGreater:
      return order > 0;
  }
  return false;
}

// The subjects that a rule is to be asked for; the node alone where its facts speak of none.
std::set<std::string> SubjectsOf(const Rule& rule, const Observations& seen) {
  std::set<std::string> subjects;
  for (const Condition& condition : rule.when) subjects.merge(seen.SubjectsOf(condition.fact));
  if (subjects.empty()) subjects.insert("");
  return subjects;
}

std::string EvidenceOf(const Rule& rule, const Observations& seen, const std::string& subject) {
  std::string out;
  const auto add = [&](const std::string& fact) {
    const std::string& text = seen.Get(fact, subject).evidence;
    if (text.empty() || out.find(text) != std::string::npos) return;
    out += (out.empty() ? "" : "; ") + text;
  };
  for (const Condition& condition : rule.when) {
    add(condition.fact);
    if (condition.value_is_fact) add(condition.value);
  }
  return out;
}

bool AllHold(const Rule& rule, const Observations& seen, const std::string& subject) {
  return std::all_of(rule.when.begin(), rule.when.end(), [&](const Condition& condition) {
    return Holds(condition, seen, subject) == Answer::kYes;
  });
}

}  // namespace

int CompareVersions(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const unsigned long left = TakeNumber(a);
    const unsigned long right = TakeNumber(b);
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

Answer Holds(const Condition& condition, const Observations& seen, const std::string& subject) {
  const Fact& fact = seen.Get(condition.fact, subject);
  if (!fact.value.known()) return Answer::kUnknown;
  std::string right = condition.value;
  if (condition.value_is_fact) {
    const Fact& other = seen.Get(condition.value, subject);
    if (!other.value.known()) return Answer::kUnknown;
    right = other.value.value;
  }
  return Compare(condition.op, fact.value.value, right) ? Answer::kYes : Answer::kNo;
}

std::vector<Finding> Evaluate(const std::vector<Rule>& rules, const Observations& seen) {
  std::vector<Finding> findings;
  for (const Rule& rule : rules) {
    if (rule.when.empty()) continue;
    for (const std::string& subject : SubjectsOf(rule, seen)) {
      if (!AllHold(rule, seen, subject)) continue;
      Finding finding;
      finding.code = rule.code;
      finding.severity = rule.severity;
      finding.effect = rule.effect;
      finding.vendor = rule.vendor;
      finding.device = subject;
      finding.evidence = EvidenceOf(rule, seen, subject);
      finding.remedy = rule.remedy;
      finding.documentation = rule.documentation;
      if (!rule.event_fact.empty()) {
        finding.event = rule.event_fact + "=" + seen.Get(rule.event_fact, subject).value.value;
      }
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace bimetal::agent
