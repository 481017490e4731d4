// A GPUService as a server sends it, and what is counted of its replicas.
#include "api/gpuservice.pb.h"
#include "core/model/service.h"
#include "tests/fuzz/round_trip.h"

BIMETAL_FUZZ(text) {
  api::GPUService object;
  if (!ReadObject(text, &object)) return;
  const auto service = core::ServiceFromApi(object, 0);
  if (!service) return Require(!service.error().message.empty());
  Require(core::PodCount(service->replica) == 1);
  Require(service->replicas >= 0 && service->replicas <= core::kMaxReplicas);
  Require(service->surge + service->unavailable > 0);  // else a rollout would never move
  Require(core::MinimumOf(*service) <= service->replicas);
  Require(service->variants.size() == service->replica.variants.size());
  for (std::size_t i = 0; i < service->variants.size(); ++i) {
    Require(service->variants[i].revision.size() == 8);
    Require(core::VariantIndex(*service, service->replica.variants[i].name) == i);
  }
}
