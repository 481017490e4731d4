#pragma once

#include <dlfcn.h>

#include "tests/unit/kernels/device/fake_gpu.h"

namespace bimetal::kernels {

// Opens a fake vendor library, which stays open, and puts its devices back to sound. Null where it
// cannot be opened; dlerror() says why. The state is the library's.
inline FakeState* SoundFake(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto* state = static_cast<FakeState*>(dlsym(handle, "fake_state"));
  if (state != nullptr) *state = FakeState{};
  return state;
}

}  // namespace bimetal::kernels
