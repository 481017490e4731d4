#pragma once

#include <string_view>

namespace bimetal::bench {

struct Seeds {
  int first = 0, last = 2;
  int Count() const { return last - first + 1; }
};

// Prints its figures; true where all are within their bars.
using Bench = bool (*)(const Seeds& seeds);

// nullptr where there is none of that name.
Bench FindBench(std::string_view name);

}  // namespace bimetal::bench
