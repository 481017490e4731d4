#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

// The part of NVIDIA's management library that we call, declared by ourselves: the library is
// opened at run time and its header is not needed to build. Sizes and names are those of header
// version 13; every function here is exported by drivers 590 and 610.
namespace bimetal::agent::nvml {

using Handle = void*;
using Return = int;

inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNotFound = 6;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kLibRmVersionMismatch = 18;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct MemoryV1 {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};

struct MemoryV2 {
  unsigned version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr unsigned kMemoryV2Version = 0x02000028;

struct Attributes {
  unsigned multiprocessors;
  unsigned shared_copy_engines;
  unsigned shared_decoders;
  unsigned shared_encoders;
  unsigned shared_jpegs;
  unsigned shared_ofas;
  unsigned gpu_instance_slices;
  unsigned compute_instance_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

using TextCall = Return (*)(Handle, char*, unsigned);
using NumberCall = Return (*)(Handle, unsigned*);
using TwoNumbersCall = Return (*)(Handle, unsigned*, unsigned*);

// Functions that the library does not have are null: an older driver, not an error.
struct Api {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*nvml_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle_by_index)(unsigned, Handle*) = nullptr;
  TextCall name = nullptr;
  TextCall uuid = nullptr;
  TextCall serial = nullptr;
  TextCall vbios = nullptr;
  TextCall inforom_image = nullptr;
  Return (*gsp_firmware)(Handle, char*) = nullptr;
  NumberCall minor = nullptr;
  NumberCall cores = nullptr;
  NumberCall link_generation = nullptr;
  NumberCall link_width = nullptr;
  NumberCall max_link_generation = nullptr;
  NumberCall max_link_width = nullptr;
  NumberCall max_mig_devices = nullptr;
  TwoNumbersCall mig_mode = nullptr;
  TwoNumbersCall ecc_mode = nullptr;
  Return (*compute_capability)(Handle, int*, int*) = nullptr;
  Return (*pci_info)(Handle, PciInfo*) = nullptr;
  Return (*memory_v1)(Handle, MemoryV1*) = nullptr;
  Return (*memory_v2)(Handle, MemoryV2*) = nullptr;
  Return (*total_ecc_errors)(Handle, int type, int counter, std::uint64_t*) = nullptr;
  Return (*remapped_rows)(Handle, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Return (*mig_handle)(Handle, unsigned, Handle*) = nullptr;
  Return (*attributes)(Handle, Attributes*) = nullptr;
  bool simulated = false;  // the library is tests/machines' and says so
  std::string path;        // what was opened
};

// Opens the first of `candidates` that exists and loads. Errors: kNotFound where none exists,
// kUnsupported where one exists but cannot be opened or has no nvmlInit.
Result<Api> Open(const std::vector<std::string>& candidates);

// "GPU is lost (15)".
std::string ReturnText(Return code);

}  // namespace bimetal::agent::nvml
