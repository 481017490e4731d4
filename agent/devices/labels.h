#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace bimetal::agent {

// `raw` as a legal Kubernetes label value: at most 63 of [A-Za-z0-9._-], alphanumeric at both ends.
// Every run of other bytes becomes one '-'. Same input, same output; empty where nothing legal is
// left, which is a legal value but no name: set no label then.
std::string CleanLabel(std::string_view raw);

// The raw names that share one cleaned label, by label; only labels with two or more.
std::map<std::string, std::set<std::string>> LabelClashes(const std::set<std::string>& raw_names);

}  // namespace bimetal::agent
