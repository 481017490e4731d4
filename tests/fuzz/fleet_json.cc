// The other kinds: pools, profiles with floors, nodes.
#include "api/fleet.pb.h"
#include "api/gpunode.pb.h"
#include "core/validation/floors.h"
#include "tests/fuzz/round_trip.h"

BIMETAL_FUZZ(text) {
  api::GPUPool pool;
  ReadObject(text, &pool);
  api::GPUNode node;
  ReadObject(text, &node);
  api::ValidationProfile profile;
  if (!ReadObject(text, &profile)) return;
  if (const auto floors = core::validation::OverridesFromApi(profile.spec())) {
    Require(static_cast<int>(floors->size()) == profile.spec().floors_size());
  }
}
