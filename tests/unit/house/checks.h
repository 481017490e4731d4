#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/unit/house/scan.h"

namespace bimetal::house {

// Each check returns one line a breach: "kube/x.cc: includes core/queue/cycle.h, which kube may not
// use".
std::vector<std::string> CheckIncludes(const File& source);
std::vector<std::string> CheckPurity(const File& source);

// Where each bimetal::NAME is defined: the folder of its first source, else of its CMake list.
using Libraries = std::map<std::string, std::string>;
Libraries FindLibraries(const std::vector<File>& lists);
std::vector<std::string> CheckLinks(const File& list, const Libraries& libraries);

}  // namespace bimetal::house
