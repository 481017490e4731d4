#include "cli/jobs.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

api::GPUJob Job(const std::string& ns, const std::string& name) {
  api::GPUJob job;
  job.mutable_metadata()->set_namespace_(ns);
  job.mutable_metadata()->set_name(name);
  job.mutable_metadata()->set_creation_timestamp("2026-11-30T12:00:00Z");
  return job;
}

TEST(RenderJobs, ShowsPlaceTimeAndCostOfARunAndDashesForOneThatWaits) {
  api::GPUJob run = Job("team", "two");
  auto& status = *run.mutable_status();
  status.set_state("Running");
  status.set_reason("PodsRunning");
  status.set_ready("4/4");
  status.mutable_assignment()->set_variant("cuda");
  status.mutable_assignment()->set_pool("nvidia");
  status.mutable_assignment()->set_devices(8);
  status.mutable_usage()->set_device_seconds("134.036");
  status.mutable_usage()->set_cost("0.08563411 USD");
  api::GPUJob wait = Job("team", "big");
  wait.mutable_status()->set_state("Pending");
  wait.mutable_status()->set_reason("WaitingForDevices");
  const TimePoint now = *ParseTime("2026-11-30T12:29:00Z");
  EXPECT_EQ(RenderJobs({run, wait, Job("demo", "new")}, now),
            "NAMESPACE  NAME  STATE    REASON             VARIANT  POOL    DEVICES  READY  "
            "DEVICE-SECONDS  COST            AGE\n"
            "demo       new   Pending  PendingEvaluation  -        -       -        -      "
            "-               -               29m\n"
            "team       big   Pending  WaitingForDevices  -        -       -        -      "
            "-               -               29m\n"
            "team       two   Running  PodsRunning        cuda     nvidia  8        4/4    "
            "134.036         0.08563411 USD  29m\n");
}

TEST(CostText, AMissingPriceIsAWordNeverZero) {
  api::Usage usage;
  EXPECT_EQ(CostText(usage), "");
  usage.set_basis("PriceMissing");
  EXPECT_EQ(CostText(usage), "PriceMissing");
  usage.set_basis("Final");
  usage.set_cost("1.20 EUR");
  EXPECT_EQ(CostText(usage), "1.20 EUR");
}

}  // namespace
}  // namespace bimetal::cli
