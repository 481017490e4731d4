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
inline constexpr Return kInsufficientSize = 7;
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

struct Utilization {
  unsigned gpu;
  unsigned memory;
};
static_assert(sizeof(Utilization) == 8);

struct ProcessInfo {
  unsigned pid;
  std::uint64_t used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct FieldValue {
  unsigned id;
  unsigned scope;
  long long timestamp;
  long long latency;
  int value_type;  // 0 double, 1 u32, 2 unsigned long, 3 u64, 4 s64, 5 s32, 6 u16
  Return code;
  std::uint64_t value;  // the first bytes are of value_type
};
static_assert(sizeof(FieldValue) == 40);
inline constexpr unsigned kFieldMemoryTemperature = 82;
inline constexpr unsigned kFieldRecoveryAction = 230;

struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  Return status;
  unsigned clique;
  unsigned char state;  // 0 not supported, 1 not started, 2 in progress, 3 completed
  unsigned health_mask;
};
static_assert(sizeof(FabricInfo) == 36);
inline constexpr unsigned kFabricInfoVersion = 0x02000024;

// No GPU has more NVLinks (NVML_NVLINK_MAX_LINKS).
inline constexpr unsigned kMaxNvLinks = 36;

using TextCall = Return (*)(Handle, char*, unsigned);
using NumberCall = Return (*)(Handle, unsigned*);
using TwoNumbersCall = Return (*)(Handle, unsigned*, unsigned*);
using LongCall = Return (*)(Handle, std::uint64_t*);

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
  Return (*nvlink_state)(Handle, unsigned link, int* active) = nullptr;
  Return (*nvlink_remote_pci)(Handle, unsigned link, PciInfo*) = nullptr;
  Return (*retired_pages)(Handle, int cause, unsigned* count, std::uint64_t* addresses) = nullptr;
  Return (*retired_pages_pending)(Handle, int*) = nullptr;
  Return (*temperature)(Handle, int sensor, unsigned*) = nullptr;
  Return (*clock)(Handle, int type, unsigned* mhz) = nullptr;
  Return (*utilization)(Handle, Utilization*) = nullptr;
  Return (*fields)(Handle, int count, FieldValue*) = nullptr;
  Return (*fabric)(Handle, FabricInfo*) = nullptr;
  Return (*processes)(Handle, unsigned* count, ProcessInfo*) = nullptr;
  NumberCall power = nullptr;        // mW
  NumberCall power_limit = nullptr;  // mW, the one in force
  NumberCall replays = nullptr;
  LongCall energy = nullptr;  // mJ since the driver was loaded
  LongCall clock_reasons = nullptr;
  bool simulated = false;  // the library is tests/machines' and says so
  std::string path;        // what was opened
};

// Opens the first of `candidates` that exists and loads. Errors: kNotFound where none exists,
// kUnsupported where one exists but cannot be opened or has no nvmlInit.
Result<Api> Open(const std::vector<std::string>& candidates);

// "GPU is lost (15)".
std::string ReturnText(Return code);

}  // namespace bimetal::agent::nvml
