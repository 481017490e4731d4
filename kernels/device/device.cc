#include "kernels/device/device.h"

#include <cctype>
#include <utility>

namespace bimetal::kernels {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// "00000000:17:00.0", "0000:17:00.0" and "17:00.0" are one place: zeros of the domain are dropped.
std::string NormalPciAddress(std::string_view text) {
  std::string out = Lower(text);
  const auto first = out.find(':');
  if (first == std::string::npos) return out;
  if (out.find(':', first + 1) == std::string::npos) return "0:" + out;
  std::size_t zeros = 0;
  while (zeros + 1 < first && out[zeros] == '0') ++zeros;
  return out.substr(zeros);
}

}  // namespace

std::string_view BackendName(BackendKind kind) {
  switch (kind) {
    case BackendKind::kCuda:
      return "cuda";
    case BackendKind::kHip:
      return "hip";
    case BackendKind::kHost:
      return "host";
  }
  return "unknown";
}

bool MatchesId(const DeviceInfo& info, std::string_view id) {
  if (id.empty()) return false;
  if (Lower(info.id) == Lower(id)) return true;
  return !info.pci_address.empty() && NormalPciAddress(info.pci_address) == NormalPciAddress(id);
}

Outcome<DeviceBuffer> DeviceBuffer::Make(Device& device, std::uint64_t bytes) {
  KERNELS_TRY_ASSIGN(Buffer buffer, device.Allocate(bytes));
  return DeviceBuffer(device, buffer);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), buffer_(other.buffer_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    device_ = std::exchange(other.device_, nullptr);
    buffer_ = other.buffer_;
  }
  return *this;
}

DeviceBuffer::~DeviceBuffer() { Release(); }

void DeviceBuffer::Release() {
  // A device that cannot free is lost or wedged; the check has already said so.
  if (device_ != nullptr) (void)device_->Free(buffer_);
  device_ = nullptr;
}

Outcome<PinnedMemory> PinnedMemory::Make(Device& device, std::uint64_t bytes) {
  KERNELS_TRY_ASSIGN(const PinnedBuffer buffer, device.AllocatePinned(bytes));
  return PinnedMemory(device, buffer);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), buffer_(other.buffer_) {}

PinnedMemory::~PinnedMemory() {
  if (device_ != nullptr) (void)device_->FreePinned(buffer_);
}

}  // namespace bimetal::kernels
