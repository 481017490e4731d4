#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/device/device.h"

namespace bimetal::workloads {

// A small network on the devices that this process sees, or on the processor where it sees none.
// Thread-safe.
class Predictor {
 public:
  static kernels::Outcome<std::unique_ptr<Predictor>> Open();

  // "cuda: 2 devices (GPU-..., GPU-...)"; for the host also why no device was taken.
  const std::string& description() const { return description_; }

  // The answer to a request, computed on one of the devices, in turn. Errors: a device that fails
  // or misses the deadline.
  kernels::Outcome<std::uint64_t> Predict(std::uint64_t request, std::chrono::milliseconds timeout);

 private:
  struct Unit {
    std::unique_ptr<kernels::Device> device;
    std::vector<kernels::DeviceBuffer> layers;  // input and output, by turns
    std::unique_ptr<std::mutex> busy;
  };
  Predictor() = default;
  static kernels::Outcome<std::uint64_t> PredictOn(Unit& unit, std::uint64_t request,
                                                   std::chrono::milliseconds timeout);

  std::unique_ptr<kernels::Backend> backend_;
  std::vector<Unit> units_;
  std::mutex turn_mutex_;
  std::size_t turn_ = 0;  // guarded by turn_mutex_
  std::string description_;
};

// The same answer by the processor alone, for comparison.
std::uint64_t PredictOnHost(std::uint64_t request);

}  // namespace bimetal::workloads
