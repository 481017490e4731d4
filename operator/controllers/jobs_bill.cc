// The part of JobController that bills attempts.
#include <algorithm>

#include "operator/controllers/conditions.h"
#include "operator/controllers/job_life.h"
#include "operator/controllers/jobs.h"

namespace bimetal::op {

// The current attempt's row and the totals, from its timeline. Calling it again changes nothing
// once every pod has ended.
void JobController::Bill(Record& record) {
  auto* row = CurrentRow(record.status);
  if (row == nullptr || record.timeline.empty() || !record.job) return;
  if (record.status.assignment().pool().empty()) return;  // of an attempt that is over
  const core::Variant* variant = nullptr;
  for (const auto& v : record.job->variants) {
    if (v.name == row->variant()) variant = &v;
  }
  if (variant == nullptr) return;
  // While it runs the figure is refreshed with the other writes of the status; the metrics are
  // live.
  std::map<std::string, std::string> models;
  for (const auto& node : record.timeline.Nodes())
    models[node] = nodes_.ModelOf(node, variant->vendor);
  auto intervals =
      record.timeline.Intervals(variant->vendor, variant->devices_per_pod, clock_.Now(), models);
  for (auto& interval : intervals) interval.pool = record.status.assignment().pool();
  std::optional<core::cost::PriceBook> book;
  const auto pool = store_.pools.find(record.status.assignment().pool());
  std::string missing;
  if (pool == store_.pools.end() || pool->second.spec().price_book_name().empty()) {
    missing = "the pool names no PriceBook; set spec.priceBookName of GPUPool " +
              record.status.assignment().pool();
  } else {
    const auto& name = pool->second.spec().price_book_name();
    const auto object = store_.price_books.find(name);
    if (object == store_.price_books.end()) {
      missing = "there is no PriceBook " + name + "; create it";
    } else if (auto parsed = core::cost::PriceBookFromApi(object->second); parsed) {
      book = std::move(*parsed);
    } else {
      missing = "PriceBook " + name + ": " + parsed.error().message;
    }
  }
  const auto bill = core::cost::PriceIntervals(intervals, book ? &*book : nullptr);
  if (bill.device_ms < row->device_milliseconds()) {
    // Pods of this attempt are gone that an earlier operator had seen: what it wrote stays.
    record.status.mutable_usage()->set_message(
        "pods vanished while the operator was away; their device time is that of the last report");
    return;
  }
  if (missing.empty() && !bill.missing.empty()) missing = bill.missing.front();

  auto& usage = *record.status.mutable_usage();
  const std::int64_t before_ms = usage.device_milliseconds() - row->device_milliseconds();
  const std::int64_t before_nano = usage.nano_cost() - row->nano_cost();
  // The oldest row may carry the sums of rows that were folded into it; it is never the current one
  // then.
  row->set_device_milliseconds(bill.device_ms);
  row->set_nano_hardware(bill.hardware.v);
  row->set_nano_energy(bill.energy.v);
  row->set_nano_labour(bill.labour.v);
  if (!models.empty()) row->set_model(Cut(models.begin()->second, 256));
  if (bill.unpriced_ms == 0)
    row->set_nano_cost(bill.Total().v);
  else
    row->clear_nano_cost();
  usage.set_device_milliseconds(before_ms + bill.device_ms);
  usage.set_nano_cost(before_nano + row->nano_cost());
  usage.set_device_seconds(core::cost::FormatSeconds(usage.device_milliseconds()));
  const bool unpriced =
      std::any_of(record.status.attempts().begin(), record.status.attempts().end(),
                  [](const auto& a) { return a.device_milliseconds() > 0 && !a.has_nano_cost(); });
  if (unpriced) {
    usage.set_basis("PriceMissing");
    usage.clear_cost();
    usage.set_message(Cut(missing, 1024));
  } else {
    if (book) usage.set_currency(book->currency);
    usage.set_basis(IsFinal(record.status) ? "Final" : "Running");
    usage.set_cost(core::cost::FormatMoney(NanoCurrency{usage.nano_cost()}) + " " +
                   usage.currency());
    usage.clear_message();
  }
}

}  // namespace bimetal::op
