#include "tests/unit/kernels/device/fake_gpu.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/checks/modules.h"

FakeState fake_state;

namespace bimetal::fake {

std::span<const kernels::ModuleImage* const> Modules() {
  static const kernels::ModuleImage* const kModules[] = {
      &kernels::MemoryPatternModule(), &kernels::ComputeChecksumModule(),
      &kernels::RatesModule(),         &kernels::AtomicsModule(),
      &kernels::GemmModule(),          &kernels::MathModule()};
  return kModules;
}

namespace {

std::mutex allocations_mutex;
std::map<void*, std::unique_ptr<std::byte[]>> allocations;

}  // namespace

void* Allocate(std::size_t bytes) {
  auto memory = std::make_unique<std::byte[]>(bytes);
  void* address = memory.get();
  const std::lock_guard lock(allocations_mutex);
  allocations[address] = std::move(memory);
  return address;
}

void Release(void* address) {
  const std::lock_guard lock(allocations_mutex);
  allocations.erase(address);
}

void Move(void* to, const void* from, std::size_t bytes, bool corrupt) {
  ++fake_state.queued_copies;
  std::memcpy(to, from, bytes);
  if (corrupt && bytes > 0) static_cast<unsigned char*>(to)[bytes / 2] ^= 1;
}

bool IsSameImage(const void* image, std::span<const std::byte> known) {
  const auto* bytes = static_cast<const std::byte*>(image);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (bytes[i] != known[i]) return false;
  }
  return true;
}

const kernels::HostKernel* FindKernel(const kernels::ModuleImage& module, const char* name) {
  for (std::size_t i = 0; i < module.host->count; ++i) {
    if (std::strcmp(module.host->kernels[i].name, name) == 0) return &module.host->kernels[i];
  }
  return nullptr;
}

void RunKernel(const kernels::HostKernel& kernel, std::uint32_t blocks, std::uint32_t threads,
               const void* args) {
  using kernels::host_thread;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    host_thread.block = block;
    host_thread.block_threads = threads;
    host_thread.grid_threads = blocks * threads;
    host_thread.unit = block % static_cast<std::uint32_t>(fake_state.units);
    host_thread.alu_fault = static_cast<int>(host_thread.unit) == fake_state.wrong_unit ? 1 : 0;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      host_thread.thread = thread;
      kernel.call(args);
    }
  }
}

}  // namespace bimetal::fake
