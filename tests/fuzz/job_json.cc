// A GPUJob as a server sends it: decoded, checked, written again.
#include "api/gpujob.pb.h"
#include "core/model/job.h"
#include "kube/codec/codec.h"
#include "kube/codec/json.h"
#include "tests/fuzz/fuzz.h"

BIMETAL_FUZZ(text) {
  api::GPUJob job;
  if (!kube::FromJson(text, &job)) return;
  core::JobFromApi(job, 0);
  if (!kube::CheckJson(text)) return;  // parts that the codec only passes on are not checked by it
  const std::string json = kube::ToJson(job);
  api::GPUJob again;
  Require(kube::FromJson(json, &again).has_value());
  Require(kube::ToJson(again) == json);
}
