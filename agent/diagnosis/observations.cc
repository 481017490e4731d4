#include "agent/diagnosis/observations.h"

#include <utility>

namespace bimetal::agent {

void Observations::Set(const std::string& fact, std::string value, std::string evidence) {
  facts_[fact][""] = {Reading<std::string>::Of(std::move(value)), std::move(evidence)};
}

void Observations::SetUnknown(const std::string& fact, std::string why) {
  facts_[fact][""] = {Reading<std::string>::Unknown(std::move(why)), {}};
}

void Observations::SetFor(const std::string& subject, const std::string& fact, std::string value,
                          std::string evidence) {
  facts_[fact][subject] = {Reading<std::string>::Of(std::move(value)), std::move(evidence)};
}

const Fact& Observations::Get(const std::string& fact, const std::string& subject) const {
  static const Fact kNobodySet{Reading<std::string>::Unknown(kNobodyLooked), {}};
  const auto found = facts_.find(fact);
  if (found == facts_.end()) return kNobodySet;
  for (const std::string& key : {subject, std::string()}) {
    const auto at = found->second.find(key);
    if (at != found->second.end()) return at->second;
  }
  return kNobodySet;
}

std::set<std::string> Observations::SubjectsOf(const std::string& fact) const {
  std::set<std::string> subjects;
  const auto found = facts_.find(fact);
  if (found == facts_.end()) return subjects;
  for (const auto& [subject, unused] : found->second) {
    if (!subject.empty()) subjects.insert(subject);
  }
  return subjects;
}

}  // namespace bimetal::agent
