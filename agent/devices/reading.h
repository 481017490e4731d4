#pragma once

#include <string>
#include <utility>

namespace bimetal::agent {

// What is known of one field. Unknown: the source does not tell (no such file, not supported).
// Error: the source should tell and reading it failed. Neither is ever 0, healthy or free.
enum class Known { kKnown, kUnknown, kError };

// One field of a device, read on its own: a field that cannot be read spoils no other.
template <class T>
struct Reading {
  Known state = Known::kUnknown;
  T value{};                     // meaningful only where state is kKnown
  std::string why = "not read";  // where not kKnown: the reason; where kKnown: empty or a remark

  static Reading Of(T v, std::string remark = {}) {
    return Reading{Known::kKnown, std::move(v), std::move(remark)};
  }
  static Reading Unknown(std::string reason) {
    return Reading{Known::kUnknown, T{}, std::move(reason)};
  }
  static Reading Failed(std::string reason) {
    return Reading{Known::kError, T{}, std::move(reason)};
  }
  bool known() const { return state == Known::kKnown; }
  bool operator==(const Reading&) const = default;
};

// The same state and reason for another type, for a field that is computed from `from`.
// REQUIRES: !from.known().
template <class To, class From>
Reading<To> SameGap(const Reading<From>& from) {
  return Reading<To>{from.state, To{}, from.why};
}

}  // namespace bimetal::agent
