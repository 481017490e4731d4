#include "cli/explain.h"

#include <cstdint>

#include "cli/jobs.h"
#include "cli/table.h"
#include "cli/text.h"
#include "core/cost/cost.h"

namespace bimetal::cli {
namespace {

// Wide enough for the longest label and a space.
constexpr std::size_t kLabelWidth = 10;

std::string Line(const std::string& label, const std::string& text) {
  if (text.empty()) return {};
  const std::string head = label + ":";
  return head + std::string(kLabelWidth - head.size(), ' ') + OneLine(text) + '\n';
}

std::string StateText(const api::GPUJob& job) {
  const auto& status = job.status();
  if (status.state().empty()) return "no status yet; is the operator running?";
  std::string text = status.state();
  if (status.reason() != text) text += ", " + status.reason();
  if (status.observed_generation() < job.metadata().generation()) {
    text += " (of an older spec; the operator has not seen the latest change yet)";
  }
  return text;
}

std::string QueueText(const api::GPUJob& job, TimePoint now) {
  const auto& status = job.status();
  std::string text = job.spec().queue_name();
  if (status.state() != "Pending") return text;
  const auto& position = status.queue_position();
  if (!position.has_ahead() || !position.has_of()) {
    return text + ", place not known (it is kept for the first jobs of a queue)";
  }
  text += ", " + std::to_string(position.ahead()) + " ahead of it, " +
          std::to_string(position.of()) + " waiting in all";
  const std::string age = HumanSince(position.as_of(), now);
  return age.empty() ? text : text + " (" + age + " ago)";
}

std::string StartText(const api::EstimatedStart& start, TimePoint now) {
  if (start.as_of().empty()) return {};
  std::string text = "unknown";
  if (!start.latest().empty()) {
    text = start.earliest() == start.latest() ? start.latest()
                                              : start.earliest() + " to " + start.latest();
  } else if (!start.earliest().empty()) {
    text = "not before " + start.earliest();
  }
  if (!start.message().empty()) text += "; " + start.message();
  return text + " (" + HumanSince(start.as_of(), now) + " ago)";
}

std::string PlaceText(const api::Assignment& place) {
  if (place.variant().empty()) return {};
  std::string text = "variant " + place.variant() + ", pool " + place.pool() + ", " +
                     std::to_string(place.devices()) +
                     (place.devices() == 1 ? " device" : " devices");
  for (int i = 0; i < place.nodes_size(); ++i) text += (i == 0 ? " on " : ", ") + place.nodes(i);
  return text;
}

const api::Blocker* BlockerOf(const api::GPUJobStatus& status, const std::string& variant) {
  for (const auto& blocker : status.blockers()) {
    if (blocker.variant() == variant) return &blocker;
  }
  return nullptr;
}

std::int64_t PodsOf(const api::GPUJobSpec& spec) {
  std::int64_t pods = 0;
  for (const auto& role : spec.roles()) pods += role.replicas();
  return pods;
}

std::string VariantsText(const api::GPUJob& job) {
  const std::int64_t pods = PodsOf(job.spec());
  Table table{{"VARIANT", "VENDOR", "PODS", "NEED", "FREE", "BLOCKER", "WHAT WOULD HELP"}, {}};
  for (const auto& variant : job.spec().variants()) {
    const api::Blocker* blocker = BlockerOf(job.status(), variant.name());
    const std::int64_t need = blocker != nullptr && blocker->has_need()
                                  ? blocker->need()
                                  : pods * variant.devices_per_pod();
    Row row{{variant.name(), variant.vendor(), std::to_string(pods), std::to_string(need)}};
    if (blocker != nullptr) {
      row.cells.push_back(blocker->has_free() ? std::to_string(blocker->free()) : "?");
      row.cells.push_back(blocker->reason());
      row.cells.push_back(blocker->unblocked_by());
    } else if (job.status().assignment().variant() == variant.name()) {
      row.cells.insert(row.cells.end(), {"", "", "nothing: this variant was chosen"});
    }
    table.rows.push_back(std::move(row));
  }
  return "\nVariants:\n" + RenderTable(table, 2);
}

std::string AttemptCost(const api::Attempt& attempt, const std::string& currency) {
  if (!attempt.has_nano_cost()) return {};
  const std::string money = core::cost::FormatMoney(NanoCurrency{attempt.nano_cost()});
  return currency.empty() ? money : money + " " + currency;
}

std::string AttemptsText(const api::GPUJob& job, TimePoint now) {
  const auto& status = job.status();
  if (status.attempts().empty()) return {};
  Table table{
      {"ATTEMPT", "VARIANT", "OUTCOME", "STARTED", "TOOK", "DEVICE-SECONDS", "COST", "MODEL"}, {}};
  for (const auto& attempt : status.attempts()) {
    const Result<TimePoint> end = ParseTime(attempt.end_time());
    std::string outcome = attempt.outcome().empty() && !end ? "running" : attempt.outcome();
    if (!attempt.class_().empty()) outcome += ", " + attempt.class_();
    table.rows.push_back({{std::to_string(attempt.number()), attempt.variant(), outcome,
                           attempt.start_time(), HumanSince(attempt.start_time(), end ? *end : now),
                           // A running attempt's bill is not written yet: unknown, not 0.
                           !end && attempt.device_milliseconds() == 0
                               ? std::string()
                               : core::cost::FormatSeconds(attempt.device_milliseconds()),
                           AttemptCost(attempt, status.usage().currency()), attempt.model()},
                          attempt.message()});
  }
  std::string text = "\nAttempts:\n" + RenderTable(table, 2);
  if (const int first = status.attempts(0).number(); first > 1) {
    text += "  attempt " + std::to_string(first) +
            " also carries the device-seconds and the cost of those before it\n";
  }
  const int limit = job.spec().retry().limit();
  return text + "  " + std::to_string(status.failures()) + " of " + std::to_string(limit) +
         (limit == 1 ? " retry used\n" : " retries used\n");
}

std::string UsageText(const api::Usage& usage) {
  if (usage.device_seconds().empty()) return {};
  std::string text = usage.device_seconds() + " device-seconds, ";
  text += usage.cost().empty() ? "cost not known" : usage.cost();
  if (!usage.basis().empty()) text += " (" + usage.basis() + ")";
  if (!usage.message().empty()) text += ": " + usage.message();
  return text;
}

}  // namespace

std::string RenderExplain(const api::GPUJob& job, TimePoint now) {
  const auto& status = job.status();
  return Line("Job", job.metadata().namespace_() + "/" + job.metadata().name()) +
         Line("State", StateText(job)) + Line("Message", status.message()) +
         Line("Queue", QueueText(job, now)) +
         Line("Start", StartText(status.estimated_start(), now)) +
         Line("Place", PlaceText(status.assignment())) +
         Line("Ready", status.ready().empty() ? "" : status.ready() + " pods") +
         Line("Usage", UsageText(status.usage())) + VariantsText(job) + AttemptsText(job, now);
}

}  // namespace bimetal::cli
