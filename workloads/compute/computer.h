#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/device.h"

namespace bimetal::workloads {

// Computes a rank's contribution on every device that this process sees, or on the processor where
// it sees none. One thread at a time.
class Computer {
 public:
  // `count`: values of one contribution.
  static kernels::Outcome<Computer> Open(std::uint64_t count);

  // "cuda: 2 devices (GPU-..., GPU-...)"; for the host also why no device was taken.
  const std::string& description() const { return description_; }

  // The contribution of `rank` in `round`, computed on every device. Errors: a device that fails,
  // misses the deadline, or disagrees with another one.
  kernels::Outcome<std::vector<std::uint64_t>> Step(std::uint64_t rank, std::uint64_t round,
                                                    std::chrono::milliseconds timeout);

 private:
  struct Unit {
    std::unique_ptr<kernels::Device> device;
    kernels::DeviceBuffer buffer;
  };
  Computer() = default;

  std::unique_ptr<kernels::Backend> backend_;
  std::vector<Unit> units_;
  std::uint64_t count_ = 0;
  std::string description_;
};

}  // namespace bimetal::workloads
