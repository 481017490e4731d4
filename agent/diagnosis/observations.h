#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "agent/devices/reading.h"

namespace bimetal::agent {

// One thing that was looked at, as a short word that rules compare, with the line or value that
// shows it.
struct Fact {
  Reading<std::string> value;  // where not known, `why` says what could not be seen
  std::string evidence;        // for people; empty: the fact only qualifies others
};

// Why a fact is not known that no collector had a reason to set.
inline constexpr char kNobodyLooked[] = "nobody looked";

// What was seen of a machine: facts of the node, and facts of one subject (a device's id, or its
// PCI address while it has none). A fact that nobody set is unknown. A plain value.
class Observations {
 public:
  // Node-wide facts.
  void Set(const std::string& fact, std::string value, std::string evidence = {});
  void SetUnknown(const std::string& fact, std::string why);
  // Facts of one subject; not empty.
  void SetFor(const std::string& subject, const std::string& fact, std::string value,
              std::string evidence = {});

  // The subject's own fact, else the node's.
  const Fact& Get(const std::string& fact, const std::string& subject = {}) const;
  // The subjects that have this fact of their own.
  std::set<std::string> SubjectsOf(const std::string& fact) const;

  const std::map<std::string, std::map<std::string, Fact>>& facts() const { return facts_; }

 private:
  std::map<std::string, std::map<std::string, Fact>> facts_;  // by name, by subject ("": node)
};

}  // namespace bimetal::agent
