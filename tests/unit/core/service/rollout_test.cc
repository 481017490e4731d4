#include "core/service/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace bimetal::core::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kCuda = 0, kRocm = 1;

// Two variants without bounds, `replicas` wanted, one more allowed during a rollout.
Service TwoVariants(std::int64_t replicas) {
  Service service;
  service.replicas = replicas;
  service.replica.variants.resize(2);
  service.variants.resize(2);
  service.surge = 1;
  service.unavailable = 0;
  return service;
}

Replica Good(int index, std::size_t variant = kCuda, bool ready = true) {
  return Replica{.index = index, .variant = variant, .current = true, .ready = ready, .seen = true};
}
Replica Old(int index, std::size_t variant = kCuda, bool ready = true) {
  return Replica{
      .index = index, .variant = variant, .current = false, .ready = ready, .seen = true};
}

Situation With(std::vector<Replica> replicas) {
  Situation out;
  out.replicas = std::move(replicas);
  return out;
}

std::vector<int> IndexesOf(const Step& step) {
  std::vector<int> out;
  for (const auto& wish : step.wishes) out.push_back(wish.index);
  return out;
}

TEST(RolloutTest, AFreshServiceWishesForAllItsReplicasInTheOrderOfItsVariants) {
  const Step step = NextStep(TwoVariants(3), {});
  EXPECT_THAT(IndexesOf(step), ElementsAre(0, 1, 2));
  for (const auto& wish : step.wishes) EXPECT_THAT(wish.variants, ElementsAre(kCuda, kRocm));
  EXPECT_THAT(step.drain, IsEmpty());
}

TEST(RolloutTest, AServiceThatHasItsReplicasWantsNothing) {
  const Step step = NextStep(TwoVariants(2), With({Good(0), Good(5, kRocm)}));
  EXPECT_THAT(step.wishes, IsEmpty());
  EXPECT_THAT(step.drain, IsEmpty());
  EXPECT_FALSE(step.rolling);
}

TEST(RolloutTest, ALostReplicaIsWishedForUnderAnIndexThatNoDyingPodHas) {
  Situation situation = With({Good(0), Good(2)});
  situation.taken = {1};
  EXPECT_THAT(IndexesOf(NextStep(TwoVariants(3), situation)), ElementsAre(3));
}

TEST(RolloutTest, AMinimumComesFirstAndIsAStandingClaim) {
  Service service = TwoVariants(3);
  service.variants[kRocm].min_replicas = 1;
  const Step step = NextStep(service, {});
  ASSERT_THAT(step.wishes, SizeIs(3));
  EXPECT_THAT(step.wishes[0].variants, ElementsAre(kRocm, kCuda));
  EXPECT_TRUE(step.wishes[0].standing);
  EXPECT_THAT(step.wishes[1].variants, ElementsAre(kCuda, kRocm));
  EXPECT_FALSE(step.wishes[1].standing);
}

TEST(RolloutTest, WeightsShareTheReplicasAndZeroIsTheLastResort) {
  Service service = TwoVariants(6);
  service.variants[kCuda].weight = 1;
  service.variants[kRocm].weight = 2;
  int rocm = 0;
  for (const auto& wish : NextStep(service, {}).wishes) rocm += wish.variants[0] == kRocm ? 1 : 0;
  EXPECT_EQ(rocm, 4);
  service.variants[kRocm].weight = 0;
  for (const auto& wish : NextStep(service, {}).wishes) {
    EXPECT_THAT(wish.variants, ElementsAre(kCuda, kRocm));
  }
}

TEST(RolloutTest, NoVariantCanBeOfferedMoreOftenThanItsMaximumAllows) {
  Service service = TwoVariants(4);
  service.variants[kCuda].max_replicas = 2;
  std::ptrdiff_t cuda = 0;
  const Step step = NextStep(service, With({Good(0, kCuda)}));
  ASSERT_THAT(step.wishes, SizeIs(3));
  for (const auto& wish : step.wishes) {
    cuda += std::count(wish.variants.begin(), wish.variants.end(), kCuda);
  }
  EXPECT_EQ(cuda, 1) << "one is there, two are the most, and all wishes may start in one cycle";
}

TEST(RolloutTest, MaximumsBelowTheWantedNumberAreSaid) {
  Service service = TwoVariants(4);
  service.variants[kCuda].max_replicas = 1;
  service.variants[kRocm].max_replicas = 1;
  const Step step = NextStep(service, {});
  EXPECT_TRUE(step.too_small);
  EXPECT_THAT(step.wishes, SizeIs(2));
}

TEST(RolloutTest, ScalingDownTakesWhatDoesNotAnswerThenTheYoungestAndKeepsMinimums) {
  Service service = TwoVariants(2);
  service.variants[kRocm].min_replicas = 1;
  EXPECT_THAT(NextStep(service, With({Good(0), Good(1), Good(2), Good(3, kRocm)})).drain,
              ElementsAre(1, 2));
  EXPECT_THAT(NextStep(service, With({Good(0, kCuda, false), Good(1), Good(3, kRocm)})).drain,
              ElementsAre(0));
}

TEST(RolloutTest, ASuspendedServiceDrainsEverything) {
  EXPECT_THAT(NextStep(TwoVariants(0), With({Good(0), Old(1), Good(2, kRocm, false)})).drain,
              ElementsAre(0, 1, 2));
}

TEST(RolloutTest, ARolloutMakesOneNewReplicaWhileAllOldOnesServe) {
  const Step step = NextStep(TwoVariants(2), With({Old(0), Old(1)}));
  EXPECT_THAT(IndexesOf(step), ElementsAre(2));
  EXPECT_THAT(step.drain, IsEmpty());
  EXPECT_TRUE(step.rolling);
}

TEST(RolloutTest, AnOldReplicaGoesWhenTheNewOneIsReadyAndNotBefore) {
  EXPECT_THAT(NextStep(TwoVariants(2), With({Old(0), Old(1), Good(2, kCuda, false)})).drain,
              IsEmpty());
  const Step step = NextStep(TwoVariants(2), With({Old(0), Old(1), Good(2)}));
  EXPECT_THAT(step.drain, ElementsAre(1));
}

TEST(RolloutTest, WhereTheNewOneFindsNoPlaceAnOldOneGoesOnlyIfProvenToMakeRoomAndBudgeted) {
  Situation situation = With({Old(0, kCuda), Old(1, kRocm)});
  situation.refused = true;
  situation.fits_in_place_of = [](const Wish&, const Replica& old) { return old.variant == kCuda; };
  Service service = TwoVariants(2);
  EXPECT_FALSE(NextStep(service, situation).replace) << "none may be missing";
  service.unavailable = 1;
  const auto step = NextStep(service, situation);
  ASSERT_TRUE(step.replace);
  EXPECT_EQ(step.replace->old_index, 0);
  EXPECT_EQ(step.replace->wish.index, 2);
  situation.fits_in_place_of = [](const Wish&, const Replica&) { return false; };
  EXPECT_FALSE(NextStep(service, situation).replace);
  situation.refused = false;
  situation.fits_in_place_of = [](const Wish&, const Replica&) { return true; };
  EXPECT_FALSE(NextStep(service, situation).replace) << "the new one has not been refused yet";
}

TEST(RolloutTest, WithoutSurgeOneIsReplacedInPlaceAtATime) {
  Service service = TwoVariants(3);
  service.surge = 0;
  service.unavailable = 1;
  Situation situation = With({Old(0), Old(1), Old(2)});
  situation.fits_in_place_of = [](const Wish&, const Replica&) { return true; };
  const Step step = NextStep(service, situation);
  EXPECT_THAT(step.wishes, IsEmpty());
  ASSERT_TRUE(step.replace);
  EXPECT_EQ(step.replace->old_index, 2);
  situation.replicas = {Old(0), Old(1)};
  situation.taken = {2};
  EXPECT_FALSE(NextStep(service, situation).replace) << "one is missing already";
}

TEST(RolloutTest, ABadRevisionThatNeverAnswersMakesRoomForTheNextOne) {
  // 0 and 1 serve the first revision; 2 is the second, which never became ready; now comes a third.
  const Step step = NextStep(TwoVariants(2), With({Old(0), Old(1), Old(2, kCuda, false)}));
  EXPECT_THAT(step.drain, ElementsAre(2));
}

TEST(RolloutTest, AMaximumOfZeroMovesReplicasToTheOtherVariantWithoutLosingOne) {
  Service service = TwoVariants(2);
  service.variants[kCuda].max_replicas = 0;
  Step step = NextStep(service, With({Good(0), Good(1)}));
  ASSERT_THAT(step.wishes, SizeIs(1));
  EXPECT_THAT(step.wishes[0].variants, ElementsAre(kRocm));
  EXPECT_THAT(step.drain, IsEmpty());
  step = NextStep(service, With({Good(0), Good(1), Good(2, kRocm)}));
  EXPECT_THAT(step.drain, ElementsAre(1));
}

TEST(RolloutTest, AMinimumThatIsNotMetIsFilledBeforeAnotherReplicaGoes) {
  Service service = TwoVariants(2);
  service.variants[kRocm].min_replicas = 1;
  Step step = NextStep(service, With({Good(0), Good(1)}));
  ASSERT_THAT(step.wishes, SizeIs(1));
  EXPECT_THAT(step.wishes[0].variants, ElementsAre(kRocm));
  EXPECT_THAT(step.drain, IsEmpty());
  step = NextStep(service, With({Good(0), Good(1), Good(2, kRocm, false)}));
  EXPECT_THAT(step.drain, IsEmpty()) << "it does not answer yet";
  step = NextStep(service, With({Good(0), Good(1), Good(2, kRocm)}));
  EXPECT_THAT(step.drain, ElementsAre(1));
}

TEST(RolloutTest, AReplicaOfAVariantThatIsGoneIsReplaced) {
  const Step step = NextStep(TwoVariants(1), With({Good(0, 7)}));
  EXPECT_THAT(step.wishes, SizeIs(1));
  EXPECT_TRUE(step.rolling);
}

TEST(RolloutTest, PreemptionMayTakeWhatIsBeyondTheMinimumsWithinTheBudget) {
  Service service = TwoVariants(4);
  service.variants[kCuda].min_replicas = 1;
  service.disrupted = 1;
  std::vector<Replica> replicas = {Good(0), Good(1), Good(2), Good(3)};
  EXPECT_THAT(Preemptible(service, replicas), ElementsAre(3u));
  service.disrupted = 4;
  EXPECT_THAT(Preemptible(service, replicas), ElementsAre(3u, 2u, 1u));
  service.disrupted = 1;
  replicas[3].ready = false;
  EXPECT_THAT(Preemptible(service, replicas), ElementsAre(3u)) << "one is missing already";
}

}  // namespace
}  // namespace bimetal::core::service
