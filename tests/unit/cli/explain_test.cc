#include "cli/explain.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

constexpr char kNow[] = "2026-11-30T12:10:00Z";

api::GPUJob TwoVariants() {
  api::GPUJob job;
  job.mutable_metadata()->set_namespace_("team");
  job.mutable_metadata()->set_name("train");
  job.mutable_metadata()->set_generation(1);
  auto& spec = *job.mutable_spec();
  spec.set_queue_name("default");
  spec.mutable_retry()->set_limit(2);
  for (const char* name : {"cuda", "rocm"}) {
    auto& variant = *spec.add_variants();
    variant.set_name(name);
    variant.set_vendor(name[0] == 'c' ? "nvidia" : "amd");
    variant.set_devices_per_pod(2);
  }
  spec.add_roles()->set_replicas(1);
  spec.add_roles()->set_replicas(3);
  job.mutable_status()->set_observed_generation(1);
  return job;
}

TEST(RenderExplain, TellsPerVariantWhatIsLackingAndWhatWouldHelp) {
  api::GPUJob job = TwoVariants();
  auto& status = *job.mutable_status();
  status.set_state("Pending");
  status.set_reason("WaitingForDevices");
  status.set_message("variant cuda needs 8 devices");
  status.mutable_queue_position()->set_ahead(0);
  status.mutable_queue_position()->set_of(3);
  status.mutable_queue_position()->set_as_of("2026-11-30T12:09:30Z");
  for (const auto& variant : job.spec().variants()) {
    auto& blocker = *status.add_blockers();
    blocker.set_variant(variant.name());
    blocker.set_reason("WaitingForDevices");
    blocker.set_need(8);
    if (variant.name() == "cuda") blocker.set_free(4);
    blocker.set_unblocked_by("job x of pool " + variant.vendor() + " ends");
  }
  EXPECT_EQ(RenderExplain(job, *ParseTime(kNow)),
            "Job:      team/train\n"
            "State:    Pending, WaitingForDevices\n"
            "Message:  variant cuda needs 8 devices\n"
            "Queue:    default, 0 ahead of it, 3 waiting in all (30s ago)\n"
            "\n"
            "Variants:\n"
            "  VARIANT  VENDOR  PODS  NEED  FREE  BLOCKER            WHAT WOULD HELP\n"
            "  cuda     nvidia  4     8     4     WaitingForDevices  job x of pool nvidia ends\n"
            "  rocm     amd     4     8     ?     WaitingForDevices  job x of pool amd ends\n");
}

TEST(RenderExplain, TellsPlaceAttemptsAndBill) {
  api::GPUJob job = TwoVariants();
  auto& status = *job.mutable_status();
  status.set_state("Running");
  status.set_reason("PodsRunning");
  status.set_ready("4/4");
  status.set_failures(1);
  auto& place = *status.mutable_assignment();
  place.set_variant("rocm");
  place.set_pool("amd");
  place.set_devices(8);
  place.add_nodes("n3");
  place.add_nodes("n4");
  auto& usage = *status.mutable_usage();
  usage.set_device_seconds("26.500");
  usage.set_cost("0.02 USD");
  usage.set_currency("USD");
  usage.set_basis("Running");
  auto& first = *status.add_attempts();
  first.set_number(1);
  first.set_variant("cuda");
  first.set_start_time("2026-11-30T12:00:00Z");
  first.set_end_time("2026-11-30T12:00:10Z");
  first.set_outcome("Failed");
  first.set_message("pod train-worker-2 ended with code 1");
  first.set_device_milliseconds(26500);
  first.set_nano_cost(20'000'000);
  first.set_model("H100");
  auto& second = *status.add_attempts();
  second.set_number(2);
  second.set_variant("rocm");
  second.set_start_time("2026-11-30T12:05:00Z");
  EXPECT_EQ(
      RenderExplain(job, *ParseTime(kNow)),
      "Job:      team/train\n"
      "State:    Running, PodsRunning\n"
      "Queue:    default\n"
      "Place:    variant rocm, pool amd, 8 devices on n3, n4\n"
      "Ready:    4/4 pods\n"
      "Usage:    26.500 device-seconds, 0.02 USD (Running)\n"
      "\n"
      "Variants:\n"
      "  VARIANT  VENDOR  PODS  NEED  FREE  BLOCKER  WHAT WOULD HELP\n"
      "  cuda     nvidia  4     8     -     -        -\n"
      "  rocm     amd     4     8     -     -        nothing: this variant was chosen\n"
      "\n"
      "Attempts:\n"
      "  ATTEMPT  VARIANT  OUTCOME  STARTED               TOOK  DEVICE-SECONDS  COST      MODEL\n"
      "  1        cuda     Failed   2026-11-30T12:00:00Z  10s   26.500          0.02 USD  H100\n"
      "    pod train-worker-2 ended with code 1\n"
      "  2        rocm     running  2026-11-30T12:05:00Z  5m    -               -         -\n"
      "  1 of 2 retries used\n");
}

TEST(RenderExplain, TellsTheClassOfAFailureAndWhenItMayStart) {
  api::GPUJob job = TwoVariants();
  auto& status = *job.mutable_status();
  status.set_state("Pending");
  auto& start = *status.mutable_estimated_start();
  start.set_as_of("2026-11-30T12:09:30Z");
  auto& attempt = *status.add_attempts();
  attempt.set_number(1);
  attempt.set_outcome("Failed");
  attempt.set_class_("OutOfMemory");
  EXPECT_NE(RenderExplain(job, *ParseTime(kNow)).find("Start:    unknown (30s ago)\n"),
            std::string::npos);
  start.set_earliest("2026-11-30T13:00:00Z");
  EXPECT_NE(RenderExplain(job, *ParseTime(kNow)).find("Start:    not before 2026-11-30T13:00:00Z"),
            std::string::npos);
  start.set_latest("2026-11-30T14:00:00Z");
  const std::string text = RenderExplain(job, *ParseTime(kNow));
  EXPECT_NE(text.find("Start:    2026-11-30T13:00:00Z to 2026-11-30T14:00:00Z"), std::string::npos);
  EXPECT_NE(text.find("Failed, OutOfMemory"), std::string::npos) << text;
}

TEST(RenderExplain, APriceThatIsMissingIsSaidWithTheReason) {
  api::GPUJob job = TwoVariants();
  auto& usage = *job.mutable_status()->mutable_usage();
  usage.set_device_seconds("26.500");
  usage.set_basis("PriceMissing");
  usage.set_message("no price for nvidia H100");
  const std::string text = RenderExplain(job, *ParseTime(kNow));
  EXPECT_NE(
      text.find("Usage:    26.500 device-seconds, cost not known (PriceMissing): no price for "
                "nvidia H100\n"),
      std::string::npos)
      << text;
}

TEST(RenderExplain, AStateThatIsItsOwnReasonIsSaidOnce) {
  api::GPUJob job = TwoVariants();
  job.mutable_status()->set_state("Completed");
  job.mutable_status()->set_reason("Completed");
  EXPECT_NE(RenderExplain(job, *ParseTime(kNow)).find("State:    Completed\n"), std::string::npos);
}

TEST(RenderExplain, SaysWhereItsWordsMayBeOld) {
  api::GPUJob job = TwoVariants();
  EXPECT_NE(RenderExplain(job, *ParseTime(kNow)).find("no status yet; is the operator running?"),
            std::string::npos);
  job.mutable_metadata()->set_generation(2);
  auto& status = *job.mutable_status();
  status.set_state("Pending");
  status.set_reason("WaitingForDevices");
  auto& last = *status.add_attempts();
  last.set_number(7);
  last.set_outcome("Failed");
  const std::string text = RenderExplain(job, *ParseTime(kNow));
  EXPECT_NE(text.find("(of an older spec;"), std::string::npos) << text;
  EXPECT_NE(text.find("default, place not known"), std::string::npos) << text;
  EXPECT_NE(text.find("attempt 7 also carries the device-seconds and the cost of those before it"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace bimetal::cli
