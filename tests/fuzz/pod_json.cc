// Pods that anybody made, as the operator keeps them: what they hold, and which queue they wait in.
#include "operator/state/store.h"
#include "tests/fuzz/round_trip.h"

BIMETAL_FUZZ(text) {
  api::Pod pod;
  if (!ReadObject(text, &pod)) return;
  const auto record = op::MakePodRecord(pod, op::Store::DefaultResources());
  Require(record.holds.requests.cpu_milli >= 0 && record.holds.requests.memory_bytes >= 0);
  for (const auto& [vendor, devices] : record.holds.devices) Require(devices.v > 0);
  for (const auto pods : record.gang) Require(pods > 0);
  if (!record.queued) return;
  Require(record.job.empty() || !record.holds.of_job);  // a pod of ours waits in no queue
  core::Node node;
  node.name = NodeName{"n"};
  node.labels = {{"zone", "a"}, {"size", "8"}};
  core::AffinityAllows(record.queued->affinity, node);
  core::Tolerates(record.queued->tolerations, {"dedicated", "", "NoSchedule"});
}
