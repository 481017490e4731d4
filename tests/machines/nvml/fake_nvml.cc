// A libnvidia-ml.so.1 for simulated machines. It answers from ../../../machine/nvml.txt beside
// itself, read again at every nvmlInit, so that faults can be put in while an agent runs. It
// exports the real names, and bimetal_simulated_nvml, by which a reader knows what it talks to. C
// library only: it is copied into other file systems.
//
// Lines of nvml.txt, the value being the rest of the line as it stands:
//   system <key> <value>          driver, nvml, cuda, count, init (a return code), hang (init)
//   device <index> <key> <value>  name, uuid, serial, ...; state lost|reset|hang
//   mig <index> <n> <key> <value> an instance of device <index>
// Keys with more than one word: "clock <type>", "nvlink <n>" with the value "<up> <PCI address at
// the other end>", "retired <cause>". "processes" holds "<pid>:<bytes>" words, or "none".
// A value "!<code>" makes the query answer that return code; a key that is not there answers
// "not supported" (3). "na" for memory is the library's own "not available", all ones.

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace {

constexpr int kOk = 0;
constexpr int kUninitialized = 1;
constexpr int kBadArgument = 2;
constexpr int kUnsupported = 3;
constexpr int kNotFound = 6;
constexpr int kTooSmall = 7;
constexpr int kLost = 15;
constexpr int kResetRequired = 16;
constexpr int kUnknown = 999;

constexpr unsigned kMaxDevices = 256;
constexpr unsigned kMaxInstances = 8;
constexpr size_t kMaxText = 1024 * 1024;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
char* text = nullptr;

// Handles are addresses in these: no state behind them.
char devices[kMaxDevices];
char instances[kMaxDevices * kMaxInstances];

// Copies the value of the line that begins with `prefix`; false where there is none.
bool Find(const char* prefix, char* out, size_t size) {
  const size_t length = strlen(prefix);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    const char* end = strchr(line, '\n');
    const size_t bytes = end == nullptr ? strlen(line) : static_cast<size_t>(end - line);
    if (bytes > length && strncmp(line, prefix, length) == 0 && line[length] == ' ') {
      const size_t value = bytes - length - 1;
      const size_t copied = value < size - 1 ? value : size - 1;
      memcpy(out, line + length + 1, copied);
      out[copied] = '\0';
      return true;
    }
    line = end == nullptr ? nullptr : end + 1;
  }
  return false;
}

[[noreturn]] void Hang() {
  for (;;) pause();
}

bool IsDevice(const void* handle, unsigned* index) {
  const char* at = static_cast<const char*>(handle);
  if (at < devices || at >= devices + kMaxDevices) return false;
  *index = static_cast<unsigned>(at - devices);
  return true;
}

bool IsInstance(const void* handle, unsigned* index, unsigned* instance) {
  const char* at = static_cast<const char*>(handle);
  if (at < instances || at >= instances + sizeof instances) return false;
  *index = static_cast<unsigned>(at - instances) / kMaxInstances;
  *instance = static_cast<unsigned>(at - instances) % kMaxInstances;
  return true;
}

int StateOf(unsigned index) {
  char prefix[64];
  char value[64];
  snprintf(prefix, sizeof prefix, "device %u state", index);
  if (!Find(prefix, value, sizeof value)) return kOk;
  if (strcmp(value, "lost") == 0) return kLost;
  if (strcmp(value, "reset") == 0) return kResetRequired;
  if (strcmp(value, "hang") == 0) Hang();
  return kOk;
}

// The value of one query of one handle.
int Query(const void* handle, const char* key, char* out, size_t size) {
  unsigned index = 0;
  unsigned instance = 0;
  char prefix[96];
  if (text == nullptr) return kUninitialized;
  if (IsDevice(handle, &index)) {
    snprintf(prefix, sizeof prefix, "device %u %s", index, key);
  } else if (IsInstance(handle, &index, &instance)) {
    snprintf(prefix, sizeof prefix, "mig %u %u %s", index, instance, key);
  } else {
    return kBadArgument;
  }
  const int state = StateOf(index);
  if (state != kOk) return state;
  if (!Find(prefix, out, size)) return kUnsupported;
  if (out[0] == '!') return atoi(out + 1);
  if (strcmp(out, "hang") == 0) Hang();
  return kOk;
}

int QueryText(const void* handle, const char* key, char* out, unsigned size) {
  char value[1024];
  if (out == nullptr) return kBadArgument;
  const int code = Query(handle, key, value, sizeof value);
  if (code != kOk) return code;
  if (strlen(value) >= size) return kTooSmall;
  memcpy(out, value, strlen(value) + 1);
  return kOk;
}

int QueryUnsigned(const void* handle, const char* key, unsigned* out) {
  char value[64];
  if (out == nullptr) return kBadArgument;
  const int code = Query(handle, key, value, sizeof value);
  if (code == kOk) *out = static_cast<unsigned>(strtoul(value, nullptr, 10));
  return code;
}

int QueryLong(const void* handle, const char* key, uint64_t* out) {
  char value[64];
  const int code = Query(handle, key, value, sizeof value);
  if (code == kOk) *out = strcmp(value, "na") == 0 ? UINT64_MAX : strtoull(value, nullptr, 10);
  return code;
}

int SystemText(const char* key, char* out, unsigned size) {
  char prefix[64];
  char value[256];
  if (text == nullptr) return kUninitialized;
  snprintf(prefix, sizeof prefix, "system %s", key);
  if (out == nullptr || !Find(prefix, value, sizeof value)) return kUnknown;
  if (strlen(value) >= size) return kTooSmall;
  memcpy(out, value, strlen(value) + 1);
  return kOk;
}

// Reads nvml.txt; null where it is missing or too long.
char* Load() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&Load), &info) == 0 || info.dli_fname == nullptr) {
    return nullptr;
  }
  char path[4096];
  const char* slash = strrchr(info.dli_fname, '/');
  const size_t folder = slash == nullptr ? 0 : static_cast<size_t>(slash - info.dli_fname);
  snprintf(path, sizeof path, "%.*s/../../../machine/nvml.txt", static_cast<int>(folder),
           info.dli_fname);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return nullptr;
  char* buffer = static_cast<char*>(malloc(kMaxText + 1));
  const size_t bytes = buffer == nullptr ? 0 : fread(buffer, 1, kMaxText, file);
  fclose(file);
  if (buffer != nullptr) buffer[bytes] = '\0';
  return buffer;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

typedef void* nvmlDevice_t;

struct nvmlPciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct nvmlMemory {
  uint64_t total, free, used;
};
struct nvmlMemory_v2 {
  unsigned version;
  uint64_t total, reserved, free, used;
};
struct nvmlAttributes {
  unsigned multiprocessors, engines[5], gpuSlices, computeSlices;
  uint64_t memoryMiB;
};
struct nvmlUtilization {
  unsigned gpu, memory;
};
struct nvmlProcessInfo {
  unsigned pid;
  uint64_t usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlFieldValue {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  int valueType, nvmlReturn;
  uint64_t value;
};
struct nvmlGpuFabricInfoV {
  unsigned version;
  unsigned char clusterUuid[16];
  int status;
  unsigned cliqueId;
  unsigned char state;
  unsigned healthMask;
};

int bimetal_simulated_nvml() { return 1; }

int nvmlInit_v2() {
  pthread_mutex_lock(&lock);
  free(text);
  text = Load();
  char value[64];
  int code = text == nullptr ? kUnknown : kOk;
  if (text != nullptr && Find("system hang", value, sizeof value)) Hang();
  if (text != nullptr && Find("system init", value, sizeof value)) code = atoi(value);
  pthread_mutex_unlock(&lock);
  return code;
}
int nvmlShutdown() {
  pthread_mutex_lock(&lock);
  free(text);
  text = nullptr;
  pthread_mutex_unlock(&lock);
  return kOk;
}
const char* nvmlErrorString(int code) { return code == kOk ? "Success" : "Simulated error"; }
int nvmlSystemGetDriverVersion(char* out, unsigned size) { return SystemText("driver", out, size); }
int nvmlSystemGetNVMLVersion(char* out, unsigned size) { return SystemText("nvml", out, size); }
int nvmlSystemGetCudaDriverVersion_v2(int* out) {
  char value[64];
  const int code = SystemText("cuda", value, sizeof value);
  if (code == kOk) *out = atoi(value);
  return code;
}
int nvmlDeviceGetCount_v2(unsigned* out) {
  char value[64];
  const int code = SystemText("count", value, sizeof value);
  if (code == kOk) *out = static_cast<unsigned>(strtoul(value, nullptr, 10));
  return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
  unsigned count = 0;
  const int code = nvmlDeviceGetCount_v2(&count);
  if (code != kOk) return code;
  if (index >= count || index >= kMaxDevices || out == nullptr) return kBadArgument;
  const int state = StateOf(index);
  if (state == kOk) *out = devices + index;
  return state;
}
int nvmlDeviceGetName(nvmlDevice_t d, char* out, unsigned n) {
  return QueryText(d, "name", out, n);
}
int nvmlDeviceGetUUID(nvmlDevice_t d, char* out, unsigned n) {
  return QueryText(d, "uuid", out, n);
}
int nvmlDeviceGetSerial(nvmlDevice_t d, char* out, unsigned n) {
  return QueryText(d, "serial", out, n);
}
int nvmlDeviceGetVbiosVersion(nvmlDevice_t d, char* out, unsigned n) {
  return QueryText(d, "vbios", out, n);
}
int nvmlDeviceGetInforomImageVersion(nvmlDevice_t d, char* out, unsigned n) {
  return QueryText(d, "inforom", out, n);
}
int nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t d, char* out) {
  return QueryText(d, "gsp", out, 64);
}
int nvmlDeviceGetMinorNumber(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "minor", out);
}
int nvmlDeviceGetNumGpuCores(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "cores", out);
}
int nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "link_generation", out);
}
int nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "link_generation_max", out);
}
int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "link_width", out);
}
int nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "link_width_max", out);
}
int nvmlDeviceGetTemperature(nvmlDevice_t d, int, unsigned* out) {
  return QueryUnsigned(d, "temperature", out);
}
int nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "power", out);
}
int nvmlDeviceGetUtilizationRates(nvmlDevice_t d, struct nvmlUtilization* out) {
  const int code = QueryUnsigned(d, "utilization", &out->gpu);
  out->memory = 0;
  return code;
}
int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int* major, int* minor) {
  char value[64];
  const int code = Query(d, "capability", value, sizeof value);
  if (code == kOk && sscanf(value, "%d.%d", major, minor) != 2) return kUnknown;
  return code;
}
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, struct nvmlPciInfo* out) {
  char value[64];
  unsigned function = 0;
  memset(out, 0, sizeof *out);
  const int code = Query(d, "pci", value, sizeof value);
  if (code != kOk) return code;
  if (sscanf(value, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4) {
    return kUnknown;
  }
  char id[32];
  if (Query(d, "pci_id", id, sizeof id) == kOk) {
    out->pciDeviceId = static_cast<unsigned>(strtoul(id, nullptr, 16));
  }
  snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.%X", out->domain, out->bus, out->device,
           function);
  snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.%X", out->domain & 0xffff,
           out->bus & 0xff, out->device & 0xff, function & 0xf);
  return kOk;
}
int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct nvmlMemory* out) {
  memset(out, 0, sizeof *out);
  const int code = QueryLong(d, "memory", &out->total);
  out->free = out->total;
  return code;
}
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, struct nvmlMemory_v2* out) {
  if (out->version != 0x02000028) return 25;
  const int code = QueryLong(d, "memory", &out->total);
  out->reserved = 0;
  out->used = 0;
  QueryLong(d, "memory_used", &out->used);
  out->free = out->total - out->used;
  return code;
}
int nvmlDeviceGetEccMode(nvmlDevice_t d, unsigned* now, unsigned* pending) {
  const int code = QueryUnsigned(d, "ecc", now);
  *pending = *now;
  return code;
}
int nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, int type, int, uint64_t* out) {
  *out = 0;
  return QueryLong(d, type == 1 ? "ecc_uncorrected" : "ecc_corrected", out);
}
int nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  char value[64];
  const int code = Query(d, "remapped", value, sizeof value);
  if (code != kOk) return code;
  return sscanf(value, "%u %u %u %u", corrected, uncorrected, pending, failed) == 4 ? kOk
                                                                                    : kUnknown;
}
int nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned* now, unsigned* pending) {
  const int code = QueryUnsigned(d, "mig", now);
  *pending = *now;
  return code;
}
int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned* out) {
  *out = kMaxInstances;
  char unused[8];
  return Query(d, "mig", unused, sizeof unused);
}
int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned n, nvmlDevice_t* out) {
  unsigned index = 0;
  char value[256];
  if (!IsDevice(d, &index) || n >= kMaxInstances) return kBadArgument;
  char* handle = instances + index * kMaxInstances + n;
  const int code = Query(handle, "uuid", value, sizeof value);
  if (code == kUnsupported) return kNotFound;
  if (code == kOk) *out = handle;
  return code;
}
int nvmlDeviceGetAttributes_v2(nvmlDevice_t d, struct nvmlAttributes* out) {
  memset(out, 0, sizeof *out);
  uint64_t bytes = 0;
  const int code = QueryUnsigned(d, "multiprocessors", &out->multiprocessors);
  if (code == kOk && QueryLong(d, "memory", &bytes) == kOk) out->memoryMiB = bytes >> 20;
  return code;
}
int nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned link, int* active) {
  char key[32];
  char value[64];
  snprintf(key, sizeof key, "nvlink %u", link);
  const int code = Query(d, key, value, sizeof value);
  // A link beyond the last one is a wrong argument; a GPU without any does not support the query.
  if (code == kUnsupported && link > 0) return kBadArgument;
  if (code == kOk) *active = atoi(value);
  return code;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned link, struct nvmlPciInfo* out) {
  char key[32];
  char value[64];
  unsigned function = 0;
  memset(out, 0, sizeof *out);
  snprintf(key, sizeof key, "nvlink %u", link);
  const int code = Query(d, key, value, sizeof value);
  if (code != kOk) return code;
  if (sscanf(value, "%*u %x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4) {
    return kNotFound;
  }
  snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.%X", out->domain, out->bus, out->device,
           function);
  return kOk;
}
int nvmlDeviceGetRetiredPages(nvmlDevice_t d, int cause, unsigned* count, uint64_t*) {
  char key[32];
  snprintf(key, sizeof key, "retired %d", cause);
  const int code = QueryUnsigned(d, key, count);
  return code == kOk && *count > 0 ? kTooSmall : code;
}
int nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t d, int* pending) {
  return QueryUnsigned(d, "retired_pending", reinterpret_cast<unsigned*>(pending));
}
int nvmlDeviceGetClockInfo(nvmlDevice_t d, int type, unsigned* out) {
  char key[32];
  snprintf(key, sizeof key, "clock %d", type);
  return QueryUnsigned(d, key, out);
}
int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "power_limit", out);
}
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, uint64_t* out) {
  return QueryLong(d, "energy", out);
}
int nvmlDeviceGetPcieReplayCounter(nvmlDevice_t d, unsigned* out) {
  return QueryUnsigned(d, "replays", out);
}
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, uint64_t* out) {
  return QueryLong(d, "clock_reasons", out);
}
int nvmlDeviceGetFieldValues(nvmlDevice_t d, int count, struct nvmlFieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    unsigned value = 0;
    int code = kUnsupported;
    if (fields[i].fieldId == 82) code = QueryUnsigned(d, "memory_temperature", &value);
    if (fields[i].fieldId == 230) code = QueryUnsigned(d, "recovery_action", &value);
    fields[i].nvmlReturn = code;
    fields[i].valueType = 1;
    fields[i].value = value;
    if (code == kLost || code == kResetRequired) return code;
  }
  return kOk;
}
int nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, struct nvmlGpuFabricInfoV* out) {
  unsigned state = 0;
  if (out->version != 0x02000024) return 25;
  const int code = QueryUnsigned(d, "fabric", &state);
  out->status = kOk;
  out->state = static_cast<unsigned char>(state);
  return code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned* count,
                                            struct nvmlProcessInfo* out) {
  char value[1024];
  const int code = Query(d, "processes", value, sizeof value);
  if (code != kOk) return code;
  unsigned found = 0;
  for (const char* at = value; at != nullptr; at = strchr(at, ' ')) {
    while (*at == ' ') ++at;
    char* end = nullptr;
    const unsigned long pid = strtoul(at, &end, 10);
    if (end == at || *end != ':') break;
    if (found == *count) return kTooSmall;
    memset(&out[found], 0, sizeof out[found]);
    out[found].pid = static_cast<unsigned>(pid);
    out[found].usedGpuMemory = strtoull(end + 1, nullptr, 10);
    ++found;
  }
  *count = found;
  return kOk;
}

}  // extern "C"
#pragma GCC visibility pop
