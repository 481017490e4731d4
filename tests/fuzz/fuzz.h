#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// What every target shares. A target defines one function with BIMETAL_FUZZ(text) { ... }; it must
// return for any bytes, and calls Require for what must hold besides.
namespace bimetal::fuzz {

// Ends the run with a finding where `held` is false.
inline void Require(bool held) {
  if (!held) std::abort();
}

// The parts of `text` between lines "---", at most `limit`; the last takes the rest.
inline std::vector<std::string> Parts(std::string_view text, std::size_t limit) {
  constexpr std::string_view kLine = "\n---\n";
  std::vector<std::string> parts;
  while (parts.size() + 1 < limit) {
    const auto at = text.find(kLine);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + kLine.size());
  }
  parts.emplace_back(text);
  return parts;
}

}  // namespace bimetal::fuzz

#define BIMETAL_FUZZ(text)                                                         \
  namespace bimetal::fuzz {                                                        \
  static void One(std::string_view text);                                          \
  }                                                                                \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) { \
    bimetal::fuzz::One(std::string_view(reinterpret_cast<const char*>(data), n));  \
    return 0;                                                                      \
  }                                                                                \
  static void bimetal::fuzz::One(std::string_view text)
