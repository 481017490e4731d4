// A GPUJob as a server sends it: decoded, checked, written again.
#include "api/gpujob.pb.h"
#include "core/model/job.h"
#include "tests/fuzz/round_trip.h"

BIMETAL_FUZZ(text) {
  api::GPUJob object;
  if (!ReadObject(text, &object)) return;
  const auto job = core::JobFromApi(object, 0);
  if (!job) return Require(!job.error().message.empty());
  Require(core::PodCount(*job) <= core::kMaxPodsOfJob);
  for (const auto& variant : job->variants) Require(core::DevicesNeeded(*job, variant) > 0);
}
