#pragma once

#include <string>
#include <utility>
#include <variant>

namespace bimetal::kernels {

// Why a device could not do what was asked. None of these says that a device is good or bad, except
// kHardwareFault: the vendor's own driver blames the hardware.
enum class DeviceErrorCode {
  kNoLibrary,      // the vendor's library is not on this machine or lacks a function
  kNoDevice,       // the library answers and sees no device
  kNotFound,       // no device has the id that was asked for
  kBusy,           // another process holds the device
  kOutOfMemory,    // not enough device memory is free
  kNoKernel,       // this program carries no kernel for the device's architecture
  kTimeout,        // the device did not answer in time
  kLost,           // the device went away
  kHardwareFault,  // the driver reports an uncorrectable hardware error
  kFailed,         // anything else that the driver reports
};

struct DeviceError {
  DeviceErrorCode code = DeviceErrorCode::kFailed;
  std::string message;  // what, on which object, lower case, no final period
};

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::move(value)) {}            // NOLINT: implicit by intent
  Outcome(DeviceError error) : state_(std::move(error)) {}  // NOLINT: implicit by intent

  bool ok() const { return state_.index() == 0; }
  // REQUIRES: ok().
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  // REQUIRES: !ok().
  const DeviceError& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, DeviceError> state_;
};

// An outcome without a value.
using Done = Outcome<std::monostate>;
inline Done Success() { return std::monostate{}; }

}  // namespace bimetal::kernels

// Leaves the calling function with the error of `expression`, if it has one.
#define KERNELS_TRY(expression)                                \
  do {                                                         \
    auto kernels_outcome = (expression);                       \
    if (!kernels_outcome.ok()) return kernels_outcome.error(); \
  } while (false)

#define KERNELS_CONCAT_INNER(a, b) a##b
#define KERNELS_CONCAT(a, b) KERNELS_CONCAT_INNER(a, b)
// `declaration` = value of `expression`, or leaves the calling function with its error.
#define KERNELS_TRY_ASSIGN(declaration, expression) \
  KERNELS_TRY_ASSIGN_IMPL(KERNELS_CONCAT(kernels_outcome_, __LINE__), declaration, expression)
#define KERNELS_TRY_ASSIGN_IMPL(name, declaration, expression) \
  auto name = (expression);                                    \
  if (!name.ok()) return name.error();                         \
  declaration = std::move(name.value())
