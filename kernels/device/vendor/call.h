#pragma once

#include "kernels/device/trace.h"

namespace bimetal::kernels {

// What a vendor's function answered, and its name.
struct VendorCall {
  int code = 0;
  const char* name = "";
};

// Calls a vendor's function; while it runs, the thread's trace names it.
template <class... Parameters, class... Arguments>
VendorCall Invoke(const char* name, int (*function)(Parameters...), Arguments... arguments) {
  const ScopedCall scope(name);
  return {function(arguments...), name};
}

}  // namespace bimetal::kernels
