#include "operator/controllers/node_memory.h"

#include "operator/controllers/conditions.h"

namespace bimetal::op {
namespace {

std::optional<TimePoint> TimeOf(const std::string& text) {
  const auto time = ParseTime(text);
  return time ? std::optional(*time) : std::nullopt;
}

}  // namespace

void StoreMemory(const core::admission::Memory& memory, api::VendorStatus* out) {
  out->set_validated_fingerprint(memory.validated_fingerprint);
  out->set_validated_boot_id(memory.validated_boot_id);
  if (memory.validated_at) out->set_validated_time(FormatTime(*memory.validated_at));
  for (const auto& device : memory.failed_devices) out->add_failed_devices(device.value);
  out->set_failed_evidence(Cut(memory.failed_evidence, 1024));
  out->set_inconclusive_runs(memory.inconclusive_runs);
  out->set_inconclusive_reason(Cut(memory.inconclusive_reason, 1024));
  if (memory.next_run) out->set_next_run_time(FormatTime(*memory.next_run));
  out->set_revalidated(memory.revalidated);
  out->set_last_run(memory.last_run);
}

core::admission::Memory LoadMemory(const api::VendorStatus& status) {
  core::admission::Memory out;
  out.validated_fingerprint = status.validated_fingerprint();
  out.validated_boot_id = status.validated_boot_id();
  out.validated_at = TimeOf(status.validated_time());
  for (const auto& device : status.failed_devices()) out.failed_devices.insert(DeviceId{device});
  out.failed_evidence = status.failed_evidence();
  out.inconclusive_runs = status.inconclusive_runs();
  out.inconclusive_reason = status.inconclusive_reason();
  out.next_run = TimeOf(status.next_run_time());
  out.revalidated = status.revalidated();
  out.last_run = status.last_run();
  return out;
}

}  // namespace bimetal::op
