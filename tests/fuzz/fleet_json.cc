// The other kinds: pools, profiles with floors, nodes, price books.
#include "api/fleet.pb.h"
#include "api/gpunode.pb.h"
#include "core/validation/floors.h"
#include "kube/codec/codec.h"
#include "tests/fuzz/fuzz.h"

namespace {

template <class Message>
void RoundTrip(std::string_view text) {
  Message message;
  if (!bimetal::kube::FromJson(text, &message)) return;
  const std::string json = bimetal::kube::ToJson(message);
  Message again;
  bimetal::fuzz::Require(bimetal::kube::FromJson(json, &again).has_value());
  bimetal::fuzz::Require(bimetal::kube::ToJson(again) == json);
}

}  // namespace

BIMETAL_FUZZ(text) {
  RoundTrip<api::GPUPool>(text);
  RoundTrip<api::GPUNode>(text);
  RoundTrip<api::PriceBook>(text);
  RoundTrip<api::ValidationProfile>(text);
  api::ValidationProfile profile;
  if (!kube::FromJson(text, &profile)) return;
  if (const auto floors = core::validation::OverridesFromApi(profile.spec())) {
    Require(static_cast<int>(floors->size()) == profile.spec().floors_size());
  }
}
