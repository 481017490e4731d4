#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/device/module.h"

// How the devices of a fake vendor library behave. Each library has one, exported as `fake_state`;
// a test sets it between runs. Numbers are the vendor's error codes; 0: no error.
struct FakeState {
  int devices = 2;
  int units = 4;
  int idle_units = 0;  // more that the device says it has and that never get work
  std::size_t free_bytes = 4u << 20;
  int alloc_error = 0;
  int load_error = 0;
  int wait_error = 0;
  bool stalled = false;         // the stream never gets ready
  int wrong_unit = -1;          // computes wrong results
  bool tells_arch = true;       // HIP: the properties name the architecture
  const char* arch = "gfx942";  // HIP
  bool peers_reachable = true;
  bool peer_enabled_before = false;  // an earlier caller did it
  bool corrupt_peer = false;         // copies to peers flip a bit
  bool corrupt_host = false;         // queued copies from and to the host flip a bit
  float event_milliseconds = 0.5f;   // between any two events
  int queued_copies = 0;             // counted
};

extern "C" FakeState fake_state;

namespace bimetal::fake {

// Device memory. What a wedged device never frees stays reachable, as with a real driver.
void* Allocate(std::size_t bytes);
void Release(void* address);

// A loader learns an image's size from the image alone: compares up to the first difference, which
// lies in the headers where sizes differ.
bool IsSameImage(const void* image, std::span<const std::byte> known);

// A queued copy; flips a bit where `corrupt`.
void Move(void* to, const void* from, std::size_t bytes, bool corrupt);

const kernels::HostKernel* FindKernel(const kernels::ModuleImage& module, const char* name);
std::span<const kernels::ModuleImage* const> Modules();

// Runs a kernel to its end on the calling thread.
void RunKernel(const kernels::HostKernel& kernel, std::uint32_t blocks, std::uint32_t threads,
               const void* args);

}  // namespace bimetal::fake
