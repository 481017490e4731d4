#include "operator/controllers/node_memory.h"

#include "operator/controllers/conditions.h"
#include "operator/state/time_of.h"

namespace bimetal::op {
namespace {

using core::admission::DeviceRecord;
using core::admission::Memory;

constexpr std::size_t kMostText = 1024;

void StoreRecord(const DeviceId& id, const DeviceRecord& record, api::DeviceRecord* out) {
  out->set_id(id.value);
  out->set_validated_fingerprint(record.fingerprint);
  out->set_validated_boot_id(record.boot_id);
  if (record.passed_at) out->set_validated_time(FormatTime(*record.passed_at));
  out->set_failed_check(record.failed_check);
  out->set_failed_evidence(Cut(record.failed_evidence, kMostText));
  out->set_cordoned(Cut(record.cordoned, kMostText));
  out->set_due(Cut(record.due, kMostText));
}

// The vendor as a whole, for people: the newest pass, and what failed.
void StoreSummary(const Memory& memory, api::VendorStatus* out) {
  const DeviceRecord* newest = nullptr;
  for (const auto& [id, record] : memory.records) {
    if (!record.failed_check.empty()) {
      out->add_failed_devices(id.value);
      if (out->failed_evidence().empty()) {
        out->set_failed_evidence(Cut(
            record.failed_check + " on " + id.value + ": " + record.failed_evidence, kMostText));
      }
    }
    if (record.passed_at && (newest == nullptr || *newest->passed_at < *record.passed_at)) {
      newest = &record;
    }
  }
  if (newest == nullptr) return;
  out->set_validated_fingerprint(newest->fingerprint);
  out->set_validated_boot_id(newest->boot_id);
  out->set_validated_time(FormatTime(*newest->passed_at));
}

}  // namespace

void StoreMemory(const Memory& memory, api::VendorStatus* out) {
  for (const auto& [id, record] : memory.records) StoreRecord(id, record, out->add_records());
  StoreSummary(memory, out);
  if (memory.path != core::admission::PathRecord{}) {
    auto* path = out->mutable_path();
    path->set_fingerprint(memory.path.fingerprint);
    path->set_boot_id(memory.path.boot_id);
    path->set_failures(memory.path.failures);
    path->set_reason(Cut(memory.path.reason, kMostText));
    if (memory.path.next) path->set_next_time(FormatTime(*memory.path.next));
  }
  out->set_inconclusive_runs(memory.inconclusive_runs);
  out->set_inconclusive_reason(Cut(memory.inconclusive_reason, kMostText));
  if (memory.next_run) out->set_next_run_time(FormatTime(*memory.next_run));
  out->set_revalidated(memory.revalidated);
  out->set_last_run(memory.last_run);
  out->set_level(memory.level);
  out->set_note(Cut(memory.note, kMostText));
  for (const auto& capability : memory.capabilities) out->add_capabilities(capability);
  for (const auto& event : memory.handled_events) out->add_handled_events(event);
}

Memory LoadMemory(const api::VendorStatus& status) {
  Memory out;
  for (const auto& record : status.records()) {
    out.records[DeviceId{record.id()}] = {.fingerprint = record.validated_fingerprint(),
                                          .boot_id = record.validated_boot_id(),
                                          .passed_at = TimeOf(record.validated_time()),
                                          .failed_check = record.failed_check(),
                                          .failed_evidence = record.failed_evidence(),
                                          .cordoned = record.cordoned(),
                                          .due = record.due()};
  }
  // A status of the first release had no records: what had failed stays failed.
  for (const auto& device : status.failed_devices()) {
    auto& record = out.records[DeviceId{device}];
    if (!record.failed_check.empty()) continue;
    record.failed_check = "a check of an earlier release";
    record.failed_evidence = status.failed_evidence();
  }
  out.path = {.fingerprint = status.path().fingerprint(),
              .boot_id = status.path().boot_id(),
              .failures = status.path().failures(),
              .reason = status.path().reason(),
              .next = TimeOf(status.path().next_time())};
  out.inconclusive_runs = status.inconclusive_runs();
  out.inconclusive_reason = status.inconclusive_reason();
  out.next_run = TimeOf(status.next_run_time());
  out.revalidated = status.revalidated();
  out.last_run = status.last_run();
  out.level = status.level();
  out.note = status.note();
  out.capabilities = {status.capabilities().begin(), status.capabilities().end()};
  out.handled_events = {status.handled_events().begin(), status.handled_events().end()};
  return out;
}

}  // namespace bimetal::op
