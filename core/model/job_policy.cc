#include "core/model/job_policy.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/cost/cost.h"
#include "core/model/check.h"

namespace bimetal::core {
namespace {

constexpr std::int64_t kMaxRetries = 100, kDefaultRetries = 2, kMaxGraceSeconds = 3600;
constexpr std::int64_t kNanosPerMilli = 1'000'000;
constexpr int kMaxRules = 16;

template <class T>
using Names = std::initializer_list<std::pair<std::string_view, T>>;

constexpr std::array<std::pair<std::string_view, FailureClass>, 8> kFailureClasses = {{
    {"UserError", FailureClass::kUserError},
    {"OutOfMemory", FailureClass::kOutOfMemory},
    {"ImagePull", FailureClass::kImagePull},
    {"DeviceFault", FailureClass::kDeviceFault},
    {"NodeLost", FailureClass::kNodeLost},
    {"Evicted", FailureClass::kEvicted},
    {"Preempted", FailureClass::kPreempted},
    {"Timeout", FailureClass::kTimeout},
}};

// The value that `text` names; an empty text leaves `value` as it is.
template <class List, class T>
Status ReadName(const std::string& field, std::string_view text, const List& names, T* value) {
  if (text.empty()) return {};
  std::string known;
  for (const auto& [name, one] : names) {
    if (name == text) {
      *value = one;
      return {};
    }
    known += known.empty() ? "" : ", ";
    known += name;
  }
  return FieldError(field, Quoted(text) + " is unknown; use one of " + known);
}

Status ReadDuration(const std::string& field, const std::string& text,
                    std::optional<Millis>* value) {
  if (text.empty()) return {};
  const auto duration = ParseDuration(text);
  if (!duration) return tl::unexpected(WithContext(duration.error(), field));
  *value = *duration;
  return {};
}

// A bound of zero would end the job before it began.
Status ReadPositive(const std::string& field, const std::string& text,
                    std::optional<Millis>* value) {
  BIMETAL_TRY(ReadDuration(field, text, value));
  if (*value && (*value)->v == 0) {
    return FieldError(field, "is zero; use a longer time or leave the field out");
  }
  return {};
}

Result<std::int64_t> ReadNano(const std::string& field, const std::string& text) {
  const auto nano = cost::ParseMoney(text);
  if (!nano) return tl::unexpected(WithContext(nano.error(), field));
  if (nano->v < 0) return FieldError(field, Quoted(text) + " is negative; use \"0\" or more");
  return nano->v;
}

Status ReadSelection(const api::Selection& from, Job* job) {
  BIMETAL_TRY(ReadName("spec.selection.policy", from.policy(),
                       Names<SelectionPolicy>{{"InOrder", SelectionPolicy::kInOrder},
                                              {"EarliestStart", SelectionPolicy::kEarliestStart},
                                              {"LowestCost", SelectionPolicy::kLowestCost},
                                              {"BestValue", SelectionPolicy::kBestValue}},
                       &job->selection));
  BIMETAL_TRY(ReadName("spec.selection.switchOnRestart", from.switch_on_restart(),
                       Names<SwitchOnRestart>{{"Never", SwitchOnRestart::kNever},
                                              {"IfPortable", SwitchOnRestart::kIfPortable},
                                              {"Always", SwitchOnRestart::kAlways}},
                       &job->switch_on_restart));
  BIMETAL_TRY(
      ReadDuration("spec.selection.fallbackAfter", from.fallback_after(), &job->fallback_after));
  if (job->fallback_after && job->selection != SelectionPolicy::kInOrder) {
    return FieldError("spec.selection.fallbackAfter",
                      "needs policy InOrder; remove it or use InOrder");
  }
  return {};
}

Status ReadRetry(const api::GPUJobSpec& spec, Job* job) {
  const std::int64_t retries = spec.has_retry() ? spec.retry().limit() : kDefaultRetries;
  BIMETAL_TRY(CheckRange("spec.retry.limit", retries, 0, kMaxRetries, "use 0 to 100"));
  job->retry_limit = static_cast<int>(retries);
  std::optional<Millis> backoff;
  BIMETAL_TRY(ReadDuration("spec.retry.backoff", spec.retry().backoff(), &backoff));
  if (backoff) job->retry_backoff = *backoff;
  BIMETAL_TRY(CheckCount("spec.retry.rules", spec.retry().rules_size(), 0, kMaxRules));
  std::set<std::string> seen;
  for (int i = 0; i < spec.retry().rules_size(); ++i) {
    const auto& from = spec.retry().rules(i);
    const std::string path = At("spec.retry.rules", i);
    BIMETAL_TRY(CheckText(path + ".class", from.class_(), 63));
    BIMETAL_TRY(CheckText(path + ".action", from.action(), 63));
    BIMETAL_TRY(CheckUnique(path + ".class", from.class_(), seen));
    RetryRule rule;
    BIMETAL_TRY(ReadName(path + ".class", from.class_(), kFailureClasses, &rule.failure));
    BIMETAL_TRY(ReadName(path + ".action", from.action(),
                         Names<RetryAction>{{"Retry", RetryAction::kRetry},
                                            {"RetryElsewhere", RetryAction::kRetryElsewhere},
                                            {"Fail", RetryAction::kFail}},
                         &rule.action));
    rule.counts = from.counts_toward_limit();
    job->retry_rules.push_back(rule);
  }
  return {};
}

Status ReadBudget(const api::Budget& from, Job* job) {
  Budget budget;
  BIMETAL_TRY_ASSIGN(budget.nano_amount, ReadNano("spec.limits.budget.amount", from.amount()));
  const std::string& currency = from.currency();
  if (currency.size() != 3 ||
      !std::all_of(currency.begin(), currency.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return FieldError("spec.limits.budget.currency",
                      Quoted(currency) + " is no ISO 4217 code; use three capitals, as in USD");
  }
  budget.currency = currency;
  BIMETAL_TRY(ReadName("spec.limits.budget.action", from.action(),
                       Names<BudgetAction>{{"Warn", BudgetAction::kWarn},
                                           {"Suspend", BudgetAction::kSuspend},
                                           {"Stop", BudgetAction::kStop}},
                       &budget.action));
  job->budget = std::move(budget);
  return {};
}

Status ReadLimits(const api::Limits& from, Job* job) {
  const std::string path = "spec.limits.";
  BIMETAL_TRY(ReadPositive(path + "startDeadline", from.start_deadline(), &job->start_deadline));
  BIMETAL_TRY(ReadPositive(path + "maxDuration", from.max_duration(), &job->max_duration));
  BIMETAL_TRY(ReadPositive(path + "estimatedDuration", from.estimated_duration(),
                           &job->estimated_duration));
  BIMETAL_TRY(
      ReadDuration(path + "ttlAfterFinished", from.ttl_after_finished(), &job->ttl_after_finished));
  if (from.has_budget()) BIMETAL_TRY(ReadBudget(from.budget(), job));
  return {};
}

Status ReadCheckpoint(const api::Checkpoint& from, Job* job) {
  Checkpoint checkpoint;
  checkpoint.claim_name = from.claim_name();
  BIMETAL_TRY(CheckText("spec.checkpoint.path", from.path(), 4096));
  if (from.path().front() != '/') {
    return FieldError("spec.checkpoint.path",
                      Quoted(from.path()) + " is not absolute; let it begin with /");
  }
  checkpoint.path = from.path();
  BIMETAL_TRY(ReadName("spec.checkpoint.signal", from.signal(),
                       Names<std::string>{{"SIGTERM", "SIGTERM"},
                                          {"SIGINT", "SIGINT"},
                                          {"SIGUSR1", "SIGUSR1"},
                                          {"SIGUSR2", "SIGUSR2"}},
                       &checkpoint.signal));
  if (from.grace_seconds() != 0) {
    BIMETAL_TRY(CheckRange("spec.checkpoint.graceSeconds", from.grace_seconds(), 1,
                           kMaxGraceSeconds, "use 1 to 3600 seconds"));
    checkpoint.grace_seconds = from.grace_seconds();
  }
  checkpoint.portable_across_vendors = from.portable_across_vendors();
  job->checkpoint = std::move(checkpoint);
  return {};
}

}  // namespace

std::string_view FailureClassName(FailureClass failure) {
  for (const auto& [name, one] : kFailureClasses) {
    if (one == failure) return name;
  }
  return "";
}

RetryRule RuleFor(const Job& job, FailureClass failure) {
  for (const RetryRule& rule : job.retry_rules) {
    if (rule.failure == failure) return rule;
  }
  const bool own_fault =
      failure == FailureClass::kUserError || failure == FailureClass::kOutOfMemory;
  return RetryRule{
      .failure = failure,
      .action = failure == FailureClass::kTimeout ? RetryAction::kFail : RetryAction::kRetry,
      .counts = own_fault};
}

Status ReadVariantPolicy(const api::Variant& from, const std::string& path, Variant* variant) {
  if (!from.relative_throughput().empty()) {
    const std::string field = path + ".relativeThroughput";
    BIMETAL_TRY_ASSIGN(const std::int64_t nano, ReadNano(field, from.relative_throughput()));
    if (nano < kNanosPerMilli) {
      return FieldError(field, Quoted(from.relative_throughput()) +
                                   " is below 0.001; use a positive number, as in \"1.8\"");
    }
    variant->relative_throughput_milli = nano / kNanosPerMilli;
  }
  if (!from.max_price_per_hour().empty()) {
    BIMETAL_TRY_ASSIGN(variant->max_nano_per_hour,
                       ReadNano(path + ".maxPricePerHour", from.max_price_per_hour()));
  }
  return {};
}

Status ReadRolePolicy(const api::Role& from, const std::string& path, Role* role) {
  if (from.has_min_replicas()) {
    BIMETAL_TRY(CheckRange(path + ".minReplicas", from.min_replicas(), 1, role->replicas,
                           "use at least 1 and at most replicas"));
    role->min_replicas = from.min_replicas();
  }
  if (!from.has_topology()) return {};
  RoleTopology topology;
  BIMETAL_TRY(CheckText(path + ".topology.level", from.topology().level(), 317));
  topology.level = from.topology().level();
  BIMETAL_TRY(ReadName(path + ".topology.mode", from.topology().mode(),
                       Names<TopologyMode>{{"Required", TopologyMode::kRequired},
                                           {"Preferred", TopologyMode::kPreferred},
                                           {"Spread", TopologyMode::kSpread}},
                       &topology.mode));
  role->topology = std::move(topology);
  return {};
}

Status ReadPolicies(const api::GPUJobSpec& spec, Job* job) {
  BIMETAL_TRY(ReadSelection(spec.selection(), job));
  BIMETAL_TRY(ReadName("spec.preemption", spec.preemption(),
                       Names<Preemption>{{"Allowed", Preemption::kAllowed},
                                         {"AfterMinRuntime", Preemption::kAfterMinRuntime},
                                         {"Never", Preemption::kNever}},
                       &job->preemption));
  BIMETAL_TRY(ReadRetry(spec, job));
  BIMETAL_TRY(ReadLimits(spec.limits(), job));
  if (spec.has_checkpoint()) BIMETAL_TRY(ReadCheckpoint(spec.checkpoint(), job));
  return {};
}

}  // namespace bimetal::core
