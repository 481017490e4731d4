#pragma once

#include <string_view>
#include <vector>

#include "agent/devices/source.h"
#include "agent/diagnosis/observations.h"
#include "agent/diagnosis/rules.h"

namespace bimetal::agent {

// Below, equal, above zero as `a` is the older, the same or the newer version: numbers between dots
// compare as numbers ("580.9" < "580.10"), missing ones are 0. Pure.
int CompareVersions(std::string_view a, std::string_view b);

// A condition's answer where a fact is not known is neither yes nor no.
enum class Answer { kNo, kYes, kUnknown };
Answer Holds(const Condition& condition, const Observations& seen, const std::string& subject);

// The findings of all rules that hold, for the node or for each subject that their facts speak of.
// A rule of which one fact is unknown does not hold. Evidence is that of the rule's facts, in its
// order. Pure.
std::vector<Finding> Evaluate(const std::vector<Rule>& rules, const Observations& seen);

}  // namespace bimetal::agent
