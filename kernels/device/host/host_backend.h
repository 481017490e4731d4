#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/device.h"

namespace bimetal::kernels {

// A fault that a simulated device has.
struct HostFault {
  enum class Kind {
    kMemory,       // bit `bit` at byte `offset` is stuck at `stuck`
    kCompute,      // unit `unit` computes wrong results
    kHang,         // `call` never returns; empty: launches never finish
    kVanish,       // the device goes away at the first launch
    kSkip,         // launches report success without having run
    kCorruptHost,  // a bit of each copy over PCIe flips
    kCorruptPeer,  // a bit of each copy to a peer flips
    kErrors,       // `count` uncorrected errors are counted under load
    kSlowMemory,   // modelled rates of device memory are lower by `percent`
    kSlowHost,     // of copies from and to the host
    kSlowLink,     // of copies between peers
    kSlowCompute,  // of arithmetic
    kLinkDown,     // no direct path to any peer: copies go through the host
    kNoMemory,     // every allocation is refused
  };
  Kind kind = Kind::kMemory;
  std::uint64_t offset = 0;
  std::uint32_t bit = 0;
  bool stuck = true;
  std::uint32_t unit = 0;
  std::uint32_t percent = 0;
  std::uint64_t count = 1;
  std::string call;  // "open", "allocate", "upload", "download", "launch", "wait", "copy", "peer"
};

// What a simulated device's rate is, whatever the machine it is simulated on can do.
struct HostRate {
  double value = 0;          // in the check's unit: GB/s, TFLOPS, us
  double noise_percent = 0;  // largest deviation of a sample
};

// A device that the host back end presents.
struct HostDeviceSpec {
  DeviceInfo info;  // info.simulated is set by the back end
  std::vector<HostFault> faults;
  // By check. Where there are none the device is the processor itself, and is measured.
  std::map<std::string, HostRate, std::less<>> rates;
};

// Bytes of a simulated device's memory that a check tests unless told otherwise.
inline constexpr std::uint64_t kHostTestBytes = 4ull << 20;
// Most bytes that one simulated device may hold at a time.
inline constexpr std::uint64_t kHostMemoryLimit = 256ull << 20;
// Most threads that kernels of one simulated device run on.
inline constexpr std::uint32_t kHostMaxThreads = 4;

// Runs kernels on this machine's processor in place of a device: each block on a small pool of
// threads, dealt to simulated compute units in turn. Everything it presents says `simulated`.
class HostBackend final : public Backend {
 public:
  explicit HostBackend(std::vector<HostDeviceSpec> devices);

  BackendKind kind() const override { return BackendKind::kHost; }
  Outcome<std::vector<DeviceInfo>> Enumerate() override;
  Outcome<std::unique_ptr<Device>> Open(std::string_view id) override;

 private:
  std::vector<HostDeviceSpec> devices_;
};

// This machine's processor as one device, "host-cpu", without faults.
HostDeviceSpec HostCpu();

// What a sound simulated device of that architecture claims where its description names no rate:
// above every floor and below every peak of its data sheet.
std::map<std::string, HostRate, std::less<>> DefaultRates(const DeviceInfo& info);

// Does not return. What a driver call on a sick device does.
[[noreturn]] void HangForever();

}  // namespace bimetal::kernels
