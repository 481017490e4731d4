#pragma once

#include <cstdint>
#include <string>

#include "agent/devices/nvidia/nvml.h"
#include "agent/devices/reading.h"

namespace bimetal::agent {

// Asks one device, each question by itself, and keeps the gravest answer in `worst`: lost or reset
// required. One owner thread; blocks in the driver. `api` must outlive it.
class NvmlAsker {
 public:
  using Number = Reading<std::int64_t>;
  using Text = Reading<std::string>;

  NvmlAsker(const nvml::Api& api, nvml::Handle handle, nvml::Return& worst)
      : api_(api), handle_(handle), worst_(worst) {}

  Text String(nvml::TextCall call);
  Text GspFirmware();
  Number Unsigned(nvml::NumberCall call);
  Number Long(nvml::LongCall call);
  // The first of the two numbers: the present mode.
  Number Mode(nvml::TwoNumbersCall call);
  struct Memory {
    Number total;
    Number used;
  };
  Memory MemoryInfo();
  Text Architecture();
  // Address and "10de:2330".
  struct Pci {
    Text address;
    Text id;
  };
  Pci PciInfo();
  // `counter` is 1 for uncorrectable, 0 for corrected errors since the driver was loaded.
  Number EccErrors(int counter);
  // A field of nvmlDeviceGetFieldValues that holds a whole number.
  Number Field(unsigned id);

  // What an answer other than success means: unknown where the query is not supported, else error.
  template <class T>
  Reading<T> Answer(nvml::Return code) {
    if (code == nvml::kGpuIsLost || code == nvml::kResetRequired) worst_ = code;
    if (code == nvml::kNotSupported || code == nvml::kFunctionNotFound) {
      return Reading<T>::Unknown(nvml::ReturnText(code));
    }
    return Reading<T>::Failed(nvml::ReturnText(code));
  }
  template <class T>
  static Reading<T> Missing() {
    return Reading<T>::Unknown("the library does not have this query");
  }
  static Number NotAvailable() { return Number::Unknown("the library gives 'not available'"); }

  const nvml::Api& api() const { return api_; }
  nvml::Handle handle() const { return handle_; }

 private:
  const nvml::Api& api_;
  nvml::Handle handle_;
  nvml::Return& worst_;
};

}  // namespace bimetal::agent
