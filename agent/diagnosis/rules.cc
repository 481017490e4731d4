#include "agent/diagnosis/rules.h"

#include <array>
#include <utility>

#include "agent/diagnosis/csv.h"

namespace bimetal::agent {
namespace {

constexpr std::size_t kColumns = 13;

constexpr std::array<std::pair<std::string_view, Step>, 8> kSteps = {
    {{"bus", Step::kBus},
     {"module", Step::kModule},
     {"nodes", Step::kNodes},
     {"library", Step::kLibrary},
     {"container", Step::kContainer},
     {"framework", Step::kFramework},
     {"health", Step::kHealth},
     {"agent", Step::kAgent}}};

std::optional<Step> ParseStep(std::string_view text) {
  for (const auto& [name, step] : kSteps) {
    if (name == text) return step;
  }
  return std::nullopt;
}

std::optional<Severity> ParseSeverity(std::string_view text) {
  if (text == "Info") return Severity::kInfo;
  if (text == "Warning") return Severity::kWarning;
  if (text == "Critical") return Severity::kError;
  return std::nullopt;
}

std::optional<Effect> ParseEffect(std::string_view text) {
  if (text == "None") return Effect::kNone;
  if (text == "Revalidate") return Effect::kRevalidate;
  if (text == "Cordon") return Effect::kCordon;
  return std::nullopt;
}

std::vector<std::string> Words(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = text.find(separator);
    std::string_view word = text.substr(0, end);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return words;
}

// "fact=value", "fact!=value", "fact<value", "fact>value", "fact!=@other".
std::optional<Condition> ParseCondition(std::string_view text) {
  const auto at = text.find_first_of("=!<>");
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  Condition out;
  out.fact = std::string(text.substr(0, at));
  std::string_view rest = text.substr(at + 1);
  if (text[at] == '!') {
    if (!rest.starts_with('=')) return std::nullopt;
    rest.remove_prefix(1);
    out.op = Condition::Op::kNotEqual;
  } else if (text[at] == '<') {
    out.op = Condition::Op::kLess;
  } else if (text[at] == '>') {
    out.op = Condition::Op::kGreater;
  }
  out.value_is_fact = rest.starts_with('@');
  if (out.value_is_fact) rest.remove_prefix(1);
  if (rest.empty()) return std::nullopt;
  out.value = std::string(rest);
  return out;
}

std::optional<Rule> ParseRule(std::string_view line) {
  const auto fields = SplitCsv(line);
  if (fields.size() != kColumns) return std::nullopt;
  const auto step = ParseStep(fields[1]);
  const auto severity = ParseSeverity(fields[3]);
  const auto effect = ParseEffect(fields[4]);
  const bool vendor = fields[2].empty() || fields[2] == "nvidia" || fields[2] == "amd";
  if (fields[0].empty() || !step || !severity || !effect || !vendor) return std::nullopt;
  Rule rule;
  rule.code = fields[0];
  rule.step = *step;
  rule.vendor = fields[2];
  rule.severity = *severity;
  rule.effect = *effect;
  for (const std::string& word : Words(fields[5], ';')) {
    const auto condition = ParseCondition(word);
    if (!condition) return std::nullopt;
    rule.when.push_back(*condition);
  }
  rule.event_fact = fields[6];
  rule.replaces = Words(fields[7], ' ');
  rule.meaning = fields[8];
  rule.remedy = fields[9];
  rule.documentation = fields[10];
  rule.source = fields[11];
  rule.date = fields[12];
  for (const auto* text : {&rule.meaning, &rule.remedy, &rule.documentation, &rule.source}) {
    if (text->empty()) return std::nullopt;
  }
  if (rule.date.size() != 7 || rule.date[4] != '-') return std::nullopt;
  return rule;
}

}  // namespace

std::string_view StepName(Step step) {
  for (const auto& [name, value] : kSteps) {
    if (value == step) return name;
  }
  return "agent";
}

std::vector<Rule> ParseRules(std::string_view csv, std::vector<std::string>* bad_lines) {
  std::vector<Rule> rules;
  for (const std::string_view line : CsvLines(csv)) {
    auto rule = ParseRule(line);
    if (rule) {
      rules.push_back(std::move(*rule));
    } else if (bad_lines != nullptr) {
      bad_lines->emplace_back(line);
    }
  }
  return rules;
}

const std::vector<Rule>& Rules() {
  static const std::vector<Rule> kRules = ParseRules(RulesCsv());
  return kRules;
}

const Rule* FindRule(std::string_view code, std::string_view vendor) {
  const Rule* first = nullptr;
  for (const Rule& rule : Rules()) {
    if (rule.code != code) continue;
    if (rule.vendor == vendor) return &rule;
    if (first == nullptr) first = &rule;
  }
  return first;
}

void ApplyRule(Finding& finding) {
  const Rule* rule = FindRule(finding.code, finding.vendor);
  if (rule == nullptr) return;
  finding.severity = rule->severity;
  finding.effect = rule->effect;
  finding.documentation = rule->documentation;
  if (finding.vendor.empty()) finding.vendor = rule->vendor;
  if (finding.remedy.empty()) finding.remedy = rule->remedy;
}

}  // namespace bimetal::agent
