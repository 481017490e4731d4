#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/source.h"

namespace bimetal::agent {

// Where in the stack a finding sits. Diagnosis goes bottom up: what is broken further down explains
// what is missing above.
enum class Step { kBus, kModule, kNodes, kLibrary, kContainer, kFramework, kHealth, kAgent };

// "bus", "module", ...
std::string_view StepName(Step step);

// One condition of a rule: a fact of the machine against a value, or against another fact. Where
// both sides are numbers or versions they are compared as such, else as text.
struct Condition {
  enum class Op { kEqual, kNotEqual, kLess, kGreater };
  std::string fact;
  Op op = Op::kEqual;
  std::string value;           // a text, or the name of a fact
  bool value_is_fact = false;  // written @name
};

// One row of data/rules.csv: what a code means, what follows from it, and when it holds. A plain
// value.
struct Rule {
  std::string code;
  Step step = Step::kBus;
  std::string vendor;  // nvidia, amd; empty: either, or the node
  Severity severity = Severity::kWarning;
  Effect effect = Effect::kNone;
  // All must hold. Empty: a reader of devices, the kernel log's table or the agent itself finds it.
  std::vector<Condition> when;
  // Name of a fact whose value makes the event's key; empty: a present state.
  std::string event_fact;
  std::vector<std::string> replaces;  // codes of the same device that this one explains
  std::string meaning;
  std::string remedy;
  std::string documentation;
  std::string source;  // where the rule's knowledge comes from
  std::string date;    // of that knowledge: YYYY-MM
};

// Every rule of a table in the form of data/rules.csv, in its order; `bad_lines` gets those that do
// not fit. Pure.
std::vector<Rule> ParseRules(std::string_view csv, std::vector<std::string>* bad_lines = nullptr);

// The rules as compiled in. Thread-safe.
const std::vector<Rule>& Rules();
std::string_view RulesCsv();

// The first rule of `code`, of that vendor where there is one. Null: no such code. Thread-safe.
const Rule* FindRule(std::string_view code, std::string_view vendor = {});

// Gives a finding what its rule says: severity, effect, vendor and documentation, and the remedy
// where it has none of its own. A finding without a rule is left as it is.
void ApplyRule(Finding& finding);

}  // namespace bimetal::agent
