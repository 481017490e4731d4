#include "operator/controllers/service_status.h"

#include <algorithm>

#include "operator/controllers/conditions.h"

namespace bimetal::op {
namespace {

// One condition before it is written.
struct Claim {
  bool yes = false;
  std::string reason, message;
};

std::string Count(std::int64_t count, const std::string& of) {
  return std::to_string(count) + " of " + of;
}

Claim AvailableOf(const core::Service& service, const ServiceFacts& facts) {
  const std::int64_t wanted = service.replicas;
  const std::string message = Count(
      facts.ready,
      std::to_string(wanted) + " replicas answer, at least " +
          std::to_string(std::max<std::int64_t>(wanted > 0 ? 1 : 0, wanted - service.unavailable)) +
          " are needed");
  if (service.suspended) return {false, "Suspended", "spec.suspend is true"};
  const bool enough =
      facts.ready >= wanted - service.unavailable && (facts.ready > 0 || wanted == 0);
  if (enough) return {true, "EnoughReady", message};
  return {false, "NotEnoughReady", message};
}

Claim ProgressingOf(const core::Service& service, const ServiceFacts& facts) {
  if (facts.rolling) {
    const std::string message =
        Count(facts.updated, std::to_string(service.replicas) + " replicas are as the spec says");
    if (facts.blocked > 0) {
      return {false, "RolloutBlocked",
              message + "; the next one waits: " + facts.blocked_message +
                  "; rollout.maxUnavailable says whether an old one may make room for it"};
    }
    return {true, "RollingOut", message};
  }
  if (facts.blocked > 0) return {false, "WaitingForPlace", facts.blocked_message};
  if (facts.wishing || facts.draining > 0) {
    return {true, "Scaling",
            Count(facts.ready, std::to_string(service.replicas) + " replicas answer, " +
                                   std::to_string(facts.draining) + " are ending")};
  }
  return {false, "Settled", "every replica is as the spec says"};
}

Claim LimitedOf(const core::Service& service, const ServiceFacts& facts) {
  if (facts.blocked > 0) {
    return {true, facts.blocked_reason,
            std::to_string(facts.blocked) +
                (facts.blocked == 1 ? " replica waits: " : " replicas wait: ") +
                facts.blocked_message};
  }
  if (facts.too_small) {
    return {
        true, "MaximumReached",
        std::to_string(service.replicas) +
            " replicas are wanted, but the variants' maxReplicas together allow fewer; raise one"};
  }
  return {false, "NotLimited", ""};
}

void SetOne(const char* type, const Claim& claim, std::int64_t generation, TimePoint now,
            api::GPUServiceStatus* status) {
  SetCondition(status->mutable_conditions(), type, claim.yes ? "True" : "False", claim.reason,
               claim.message, generation, now);
}

void FillVariants(const core::Service& service, const ServiceFacts& facts,
                  api::GPUServiceStatus* status) {
  status->clear_variants();
  std::string summary;
  for (std::size_t v = 0; v < facts.variants.size(); ++v) {
    const VariantFacts& variant = facts.variants[v];
    const std::string& name = service.replica.variants[v].name;
    auto* row = status->add_variants();
    row->set_name(name);
    row->set_desired(variant.desired);
    row->set_ready(variant.ready);
    row->set_blocked(variant.blocked);
    row->set_reason(variant.reason);
    row->set_message(Cut(variant.message, 1024));
    summary += (summary.empty() ? "" : ", ") + name + " " + std::to_string(variant.ready) + "/" +
               std::to_string(variant.live);
  }
  status->set_summary(Cut(summary, 1024));
}

}  // namespace

void FillStatus(const core::Service& service, const ServiceFacts& facts, std::int64_t generation,
                TimePoint now, api::GPUServiceStatus* status) {
  status->set_observed_generation(generation);
  status->set_replicas(facts.live);
  status->set_ready_replicas(facts.ready);
  status->set_updated_replicas(facts.updated);
  status->set_draining(facts.draining);
  status->set_blocked(facts.blocked);
  FillVariants(service, facts, status);
  SetOne("Available", AvailableOf(service, facts), generation, now, status);
  SetOne("Progressing", ProgressingOf(service, facts), generation, now, status);
  SetOne("ScalingLimited", LimitedOf(service, facts), generation, now, status);
  SetOne("Degraded",
         facts.trouble.empty() ? Claim{false, "AsExpected", ""}
                               : Claim{true, facts.trouble, facts.trouble_message},
         generation, now, status);
  SetOne("Suspended",
         service.suspended ? Claim{true, "Suspended", "spec.suspend is true; set it to false"}
                           : Claim{false, "NotSuspended", ""},
         generation, now, status);
}

void FillMisconfigured(const std::string& message, std::int64_t generation, TimePoint now,
                       api::GPUServiceStatus* status) {
  status->set_observed_generation(generation);
  SetOne("Progressing", {false, "Misconfigured", message}, generation, now, status);
  SetOne("Degraded", {true, "Misconfigured", message}, generation, now, status);
}

}  // namespace bimetal::op
