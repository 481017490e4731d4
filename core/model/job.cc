#include "core/model/job.h"

#include <set>
#include <string_view>

#include "api/gpujob.pb.h"
#include "core/base/quantity.h"
#include "core/model/check.h"
#include "core/model/job_policy.h"
#include "core/model/saturate.h"
#include "core/model/template_check.h"

namespace bimetal::core {
namespace {

// The bounds of api/gpujob.proto, for servers and clients that do not enforce them.
constexpr std::size_t kMaxJobName = 40, kMaxVariantName = 63, kMaxRoleName = 20, kMaxText = 1024;
constexpr int kMaxVariants = 8, kMaxRoles = 16, kMaxModels = 32;
constexpr int kMaxCommand = 64, kMaxArgs = 256, kMaxEnv = 256;
constexpr int kMaxPrecisions = 16;
constexpr std::int64_t kMaxDevicesPerPod = 128;

Status ReadMetadata(const api::GPUJob& from, Job* job) {
  const auto& metadata = from.metadata();
  if (metadata.uid().empty()) {
    return FieldError("metadata.uid", "is empty; only a job that the API server stored can run");
  }
  BIMETAL_TRY(CheckLabelName("metadata.name", metadata.name(), kMaxJobName));
  if (metadata.name().front() >= '0' && metadata.name().front() <= '9') {
    return FieldError("metadata.name", Quoted(metadata.name()) +
                                           " begins with a digit; let it begin with a letter, "
                                           "because host names are made from it");
  }
  job->uid = Uid{metadata.uid()};
  job->name_space = metadata.namespace_();
  job->name = metadata.name();
  if (metadata.creation_timestamp().empty()) return {};
  const auto created = ParseTime(metadata.creation_timestamp());
  if (!created) return tl::unexpected(WithContext(created.error(), "metadata.creationTimestamp"));
  job->created = *created;
  return {};
}

Status CheckProgram(const api::Variant& from, const std::string& path) {
  BIMETAL_TRY(CheckText(path + ".image", from.image(), kMaxText));
  BIMETAL_TRY(CheckCount(path + ".command", from.command_size(), 0, kMaxCommand));
  BIMETAL_TRY(CheckCount(path + ".args", from.args_size(), 0, kMaxArgs));
  BIMETAL_TRY(CheckCount(path + ".env", from.env_size(), 0, kMaxEnv));
  std::set<std::string> names;
  for (int i = 0; i < from.env_size(); ++i) {
    const std::string field = At(path + ".env", i) + ".name";
    BIMETAL_TRY(CheckText(field, from.env(i).name(), 256));
    BIMETAL_TRY(CheckUnique(field, from.env(i).name(), names));
  }
  return {};
}

Status ReadSelector(const api::DeviceSelector& from, const std::string& path, Variant* variant) {
  BIMETAL_TRY(CheckCount(path + ".models", from.models_size(), 0, kMaxModels));
  std::set<std::string> seen;
  for (int i = 0; i < from.models_size(); ++i) {
    const std::string field = At(path + ".models", i);
    BIMETAL_TRY(CheckText(field, from.models(i), 256));
    BIMETAL_TRY(CheckUnique(field, from.models(i), seen));
    variant->models.push_back(from.models(i));
  }
  BIMETAL_TRY(CheckCount(path + ".precisions", from.precisions_size(), 0, kMaxPrecisions));
  std::set<std::string> precisions;
  for (int i = 0; i < from.precisions_size(); ++i) {
    const std::string field = At(path + ".precisions", i);
    BIMETAL_TRY(CheckText(field, from.precisions(i), 63));
    BIMETAL_TRY(CheckUnique(field, from.precisions(i), precisions));
  }
  variant->precisions.assign(precisions.begin(), precisions.end());
  const std::string& level = from.min_validation_level();
  if (level == "L1") variant->min_validation_level = 1;
  if (level == "L2") variant->min_validation_level = 2;
  if (!level.empty() && level != "L0" && variant->min_validation_level == 0) {
    return FieldError(path + ".minValidationLevel",
                      Quoted(level) + " is unknown; use L0, L1 or L2");
  }
  if (from.min_memory().empty()) return {};
  const std::string field = path + ".minMemory";
  const auto bytes = ParseQuantity(from.min_memory());
  if (!bytes) return tl::unexpected(WithContext(bytes.error(), field));
  if (*bytes < 0) {
    return FieldError(field, Quoted(from.min_memory()) + " is negative; use \"0\" or more");
  }
  variant->min_memory_bytes = *bytes;
  return {};
}

Status ReadVariants(const api::GPUJobSpec& spec, Job* job) {
  BIMETAL_TRY(CheckCount("spec.variants", spec.variants_size(), 1, kMaxVariants));
  std::set<std::string> names;
  for (int i = 0; i < spec.variants_size(); ++i) {
    const auto& from = spec.variants(i);
    const std::string path = At("spec.variants", i);
    BIMETAL_TRY(CheckLabelName(path + ".name", from.name(), kMaxVariantName));
    BIMETAL_TRY(CheckUnique(path + ".name", from.name(), names));
    const auto vendor = ParseVendor(from.vendor());
    if (!vendor) return tl::unexpected(WithContext(vendor.error(), path + ".vendor"));
    BIMETAL_TRY(CheckRange(path + ".devicesPerPod", from.devices_per_pod(), 1, kMaxDevicesPerPod,
                           "use 1 to 128 devices for each pod"));
    Variant variant;
    variant.name = from.name();
    variant.vendor = *vendor;
    variant.devices_per_pod = from.devices_per_pod();
    BIMETAL_TRY(ReadSelector(from.device_selector(), path + ".deviceSelector", &variant));
    BIMETAL_TRY(ReadVariantPolicy(from, path, &variant));
    BIMETAL_TRY(CheckProgram(from, path));
    job->variants.push_back(std::move(variant));
  }
  return {};
}

Status ReadRoles(const api::GPUJobSpec& spec, Job* job) {
  BIMETAL_TRY(CheckCount("spec.roles", spec.roles_size(), 1, kMaxRoles));
  std::set<std::string> names;
  for (int i = 0; i < spec.roles_size(); ++i) {
    const auto& from = spec.roles(i);
    const std::string path = At("spec.roles", i);
    BIMETAL_TRY(CheckLabelName(path + ".name", from.name(), kMaxRoleName));
    BIMETAL_TRY(CheckUnique(path + ".name", from.name(), names));
    const std::string remedy = from.replicas() < 1 ? "use at least one pod" : "use fewer pods";
    BIMETAL_TRY(CheckRange(path + ".replicas", from.replicas(), 1, kMaxPodsOfJob, remedy));
    Role role;
    role.name = from.name();
    role.replicas = from.replicas();
    BIMETAL_TRY(ReadTemplate(from.template_(), path + ".template", &role));
    BIMETAL_TRY(ReadRolePolicy(from, path, &role));
    job->roles.push_back(std::move(role));
  }
  return CheckRange("spec.roles", PodCount(*job), 1, kMaxPodsOfJob,
                    "use fewer pods in all roles together");
}

}  // namespace

Result<Job> JobFromApi(const api::GPUJob& from, std::int64_t priority) {
  Job job;
  job.priority = priority;
  BIMETAL_TRY(ReadMetadata(from, &job));
  const auto& spec = from.spec();
  job.queue = QueueName{spec.queue_name().empty() ? "default" : spec.queue_name()};
  BIMETAL_TRY(CheckText("spec.queueName", job.queue.value, 253));
  job.suspended = spec.suspend();
  BIMETAL_TRY(ReadPolicies(spec, &job));
  BIMETAL_TRY(ReadVariants(spec, &job));
  BIMETAL_TRY(ReadRoles(spec, &job));
  return job;
}

std::int64_t PodCount(const Job& job) {
  std::int64_t pods = 0;
  for (const Role& role : job.roles) pods = SaturatingAdd(pods, role.replicas);
  return pods;
}

std::int64_t DevicesNeeded(const Job& job, const Variant& variant) {
  return SaturatingMultiply(PodCount(job), variant.devices_per_pod);
}

}  // namespace bimetal::core
