#include "core/model/service.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "core/base/hash.h"
#include "core/model/check.h"
#include "core/model/saturate.h"

namespace bimetal::core {
namespace {

constexpr std::int64_t kMaxWeight = 1'000'000, kMaxDrainSeconds = 3600;
constexpr int kMaxPort = 65535, kMaxProbeSeconds = 300;
constexpr std::size_t kRevisionDigits = 8;

// A replica as a job of one pod, so that both are read and checked by the same code.
api::GPUJob AsJob(const api::GPUService& from) {
  api::GPUJob job;
  *job.mutable_metadata() = from.metadata();
  auto& spec = *job.mutable_spec();
  spec.set_queue_name(from.spec().queue_name());
  spec.set_priority_class_name(from.spec().priority_class_name());
  spec.set_suspend(from.spec().suspend());
  *spec.mutable_selection() = from.spec().selection();
  for (const auto& variant : from.spec().variants()) *spec.add_variants() = VariantOf(variant);
  auto* role = spec.add_roles();
  role->set_name("replica");
  role->set_replicas(1);
  *role->mutable_template_() = from.spec().template_();
  return job;
}

// Says of the service what was said of the job that stands for a replica.
Error InWordsOfService(Error error) {
  constexpr std::string_view kOfJob = "spec.roles[0].template";
  if (const auto at = error.message.find(kOfJob); at != std::string::npos) {
    error.message.replace(at, kOfJob.size(), "spec.template");
  }
  return error;
}

// "2" or "25%" of `replicas`; `fallback` where the text is empty.
Result<std::int64_t> ReadShare(const std::string& field, std::string_view text,
                               std::int64_t fallback, std::int64_t replicas, bool round_up) {
  if (text.empty()) return fallback;
  const bool percent = text.back() == '%';
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  std::int64_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || end.ec != std::errc() || end.ptr != digits.data() + digits.size() ||
      value < 0) {
    return FieldError(field, Quoted(text) +
                                 " is neither a number of replicas nor a share of them; "
                                 "use 0 or more, or \"25%\"");
  }
  if (!percent) return std::min(value, kMaxReplicas);
  if (value > 100) return FieldError(field, Quoted(text) + " is over 100%; use at most \"100%\"");
  return (replicas * value + (round_up ? 99 : 0)) / 100;
}

Status CheckPort(const std::string& field, std::int64_t port) {
  return CheckRange(field, port, 1, kMaxPort, "use a port from 1 to 65535");
}

Status CheckReadiness(const api::Readiness& from) {
  const std::string at = "spec.readiness";
  if (!from.path().empty() && from.path().front() != '/') {
    return FieldError(at + ".path", Quoted(from.path()) + " does not begin with /; let it");
  }
  if (from.port() != 0) BIMETAL_TRY(CheckPort(at + ".port", from.port()));
  BIMETAL_TRY(CheckRange(at + ".periodSeconds", from.period_seconds(), 0, kMaxProbeSeconds,
                         "use 1 to 300 seconds"));
  BIMETAL_TRY(CheckRange(at + ".timeoutSeconds", from.timeout_seconds(), 0, kMaxProbeSeconds,
                         "use 1 to 300 seconds"));
  return CheckRange(at + ".failureThreshold", from.failure_threshold(), 0, 100, "use 1 to 100");
}

std::string Deterministic(const google::protobuf::Message& message) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);  // maps have no order of their own
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

// What is in it makes another pod; what only says how many there are is not.
std::string RevisionOf(const api::GPUServiceSpec& spec, const api::ServiceVariant& variant) {
  api::GPUServiceSpec what;
  *what.mutable_template_() = spec.template_();
  *what.mutable_readiness() = spec.readiness();
  if (spec.has_drain_seconds()) what.set_drain_seconds(spec.drain_seconds());
  auto* own = what.add_variants();
  *own = variant;
  own->clear_min_replicas();
  own->clear_max_replicas();
  own->clear_weight();
  own->clear_relative_throughput();
  own->clear_max_price_per_hour();
  return ShortHash(Deterministic(what)).substr(0, kRevisionDigits);
}

Status ReadServiceVariants(const api::GPUServiceSpec& spec, Service* service) {
  for (int i = 0; i < spec.variants_size(); ++i) {
    const auto& from = spec.variants(i);
    const std::string path = At("spec.variants", i);
    ServiceVariant variant;
    if (from.port() != 0) variant.port = from.port();
    BIMETAL_TRY(CheckPort(path + ".port", variant.port));
    BIMETAL_TRY(CheckRange(path + ".minReplicas", from.min_replicas(), 0, kMaxReplicas,
                           "use 0 to 1000 replicas"));
    variant.min_replicas = from.min_replicas();
    if (from.has_max_replicas()) {
      BIMETAL_TRY(CheckRange(path + ".maxReplicas", from.max_replicas(), variant.min_replicas,
                             kMaxReplicas, "use minReplicas to 1000 replicas"));
      variant.max_replicas = from.max_replicas();
    }
    if (from.has_weight()) {
      BIMETAL_TRY(CheckRange(path + ".weight", from.weight(), 0, kMaxWeight, "use 0 to 1000000"));
      variant.weight = from.weight();
    }
    variant.revision = RevisionOf(spec, from);
    service->variants.push_back(std::move(variant));
  }
  return {};
}

Status ReadBudgets(const api::GPUServiceSpec& spec, Service* service) {
  const std::int64_t wanted = service->replicas;
  BIMETAL_TRY_ASSIGN(service->surge, ReadShare("spec.rollout.maxSurge", spec.rollout().max_surge(),
                                               (wanted + 3) / 4, wanted, true));
  BIMETAL_TRY_ASSIGN(service->unavailable,
                     ReadShare("spec.rollout.maxUnavailable", spec.rollout().max_unavailable(),
                               wanted / 4, wanted, false));
  if (service->surge == 0 && service->unavailable == 0) service->unavailable = 1;
  BIMETAL_TRY_ASSIGN(service->disrupted,
                     ReadShare("spec.disruption.maxUnavailable",
                               spec.disruption().max_unavailable(), 1, wanted, false));
  if (spec.disruption().min_runtime().empty()) return {};
  const auto runtime = ParseDuration(spec.disruption().min_runtime());
  if (!runtime) {
    return tl::unexpected(WithContext(runtime.error(), "spec.disruption.minRuntime"));
  }
  service->min_runtime = *runtime;
  return {};
}

}  // namespace

api::Variant VariantOf(const api::ServiceVariant& variant) {
  // The fields that both have share names, numbers and types (a test holds that against them).
  api::Variant out;
  out.ParseFromString(variant.SerializeAsString());
  out.DiscardUnknownFields();
  return out;
}

Result<Service> ServiceFromApi(const api::GPUService& from, std::int64_t priority) {
  Service service;
  auto replica = JobFromApi(AsJob(from), priority);
  if (!replica) return tl::unexpected(InWordsOfService(std::move(replica).error()));
  service.replica = std::move(*replica);
  const auto& spec = from.spec();
  service.suspended = spec.suspend();
  const std::int64_t replicas = spec.has_replicas() ? spec.replicas() : 1;
  BIMETAL_TRY(CheckRange("spec.replicas", replicas, 0, kMaxReplicas, "use 0 to 1000 replicas"));
  service.replicas = service.suspended ? 0 : replicas;
  if (spec.port() != 0) BIMETAL_TRY(CheckPort("spec.port", spec.port()));
  BIMETAL_TRY(CheckRange("spec.drainSeconds", spec.drain_seconds(), 0, kMaxDrainSeconds,
                         "use 0 to 3600 seconds"));
  BIMETAL_TRY(CheckReadiness(spec.readiness()));
  BIMETAL_TRY(ReadServiceVariants(spec, &service));
  BIMETAL_TRY(ReadBudgets(spec, &service));
  return service;
}

std::size_t VariantIndex(const Service& service, std::string_view name) {
  const auto& variants = service.replica.variants;
  const auto it = std::find_if(variants.begin(), variants.end(),
                               [&](const Variant& variant) { return variant.name == name; });
  return static_cast<std::size_t>(it - variants.begin());
}

std::int64_t MinimumOf(const Service& service) {
  std::int64_t sum = 0;
  for (const auto& variant : service.variants) sum = SaturatingAdd(sum, variant.min_replicas);
  return std::min(sum, service.replicas);
}

}  // namespace bimetal::core
