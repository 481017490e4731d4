#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace bimetal {

// A value whose copies share one object until one of them is edited. For large values that pass
// through many hands and seldom change. Copies may be read from several threads; one copy is edited
// by one thread, as any value.
template <class T>
class Shared {
 public:
  Shared() : value_(std::make_shared<T>()) {}
  // From whatever a T is made of without being asked.
  template <class U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, Shared>)
      Shared(U&& value)  // NOLINT: it is the value
      : value_(std::make_shared<T>(static_cast<T>(std::forward<U>(value)))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }  // NOLINT: it is the value

  // This copy's own object; valid until this copy is copied again.
  T& Edit() {
    if (value_.use_count() != 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace bimetal
