#include "kernels/device/library.h"

#include <dlfcn.h>

namespace bimetal::kernels {

Outcome<Library> Library::Open(const std::vector<std::string>& names) {
  std::string reason;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return Library(name, handle);
    const char* text = dlerror();
    if (reason.empty()) reason = text == nullptr ? name + ": unknown loader error" : text;
  }
  return DeviceError{DeviceErrorCode::kNoLibrary, "could not open the vendor library: " + reason};
}

void* Library::Find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace bimetal::kernels
