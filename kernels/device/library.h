#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/outcome.h"

namespace bimetal::kernels {

// A shared library opened at run time. It is never closed: vendor libraries own threads and run
// code at exit. Immutable once opened.
class Library {
 public:
  // The first of `names` that opens. Error kNoLibrary with the loader's reason for the first name.
  static Outcome<Library> Open(const std::vector<std::string>& names);

  // Sets `function` to the symbol. Error kNoLibrary where it is missing.
  template <class Function>
  Done Load(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(Find(symbol));
    if (*function != nullptr) return Success();
    return DeviceError{DeviceErrorCode::kNoLibrary,
                       name_ + " has no function " + std::string(symbol)};
  }

  // The symbol's address, or null.
  void* Find(const char* symbol) const;
  const std::string& name() const { return name_; }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace bimetal::kernels
