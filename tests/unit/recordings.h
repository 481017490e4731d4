#pragma once

#include <cstdlib>
#include <string>

namespace bimetal {

// Where the recorded machines lie, with a slash at the end: $BIMETAL_SHARED, else `shared` beside
// the source tree. The folder may be missing: a test then skips loudly.
inline std::string Fixtures() {
  const char* shared = std::getenv("BIMETAL_SHARED");
  const char* source = std::getenv("BIMETAL_SOURCE_DIR");
  const std::string base =
      shared != nullptr ? shared : std::string(source != nullptr ? source : ".") + "/../shared";
  return base + "/fixtures/";
}

}  // namespace bimetal
