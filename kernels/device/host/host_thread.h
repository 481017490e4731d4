#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bimetal::kernels {

// Where a host thread stands while it plays one thread of a kernel.
struct HostThread {
  std::uint32_t thread = 0;
  std::uint32_t block = 0;
  std::uint32_t block_threads = 1;
  std::uint32_t grid_threads = 1;
  std::uint32_t unit = 0;       // simulated compute unit
  std::uint64_t alu_fault = 0;  // bits that this unit's arithmetic flips; 0: sound
};

inline thread_local HostThread host_thread;

// A kernel as the host back end calls it.
struct HostKernel {
  const char* name;
  std::size_t args_bytes;
  void (*call)(const void* args);
};

struct HostKernelTable {
  const HostKernel* kernels;
  std::size_t count;
};

template <class Args, void (*kernel)(Args)>
void CallKernel(const void* args) {
  Args copy;
  std::memcpy(&copy, args, sizeof(copy));
  kernel(copy);
}

}  // namespace bimetal::kernels
