#pragma once

#include <string>
#include <vector>

#include "api/gpuservice.pb.h"
#include "core/base/time.h"
#include "core/model/service.h"

namespace bimetal::op {

// Where one variant of a service stands.
struct VariantFacts {
  int desired = 0, live = 0, ready = 0, blocked = 0;
  std::string reason, message;  // why replicas of it wait; empty where none does
};

// Where a service stands, as far as its status tells.
struct ServiceFacts {
  std::vector<VariantFacts> variants;  // as in the service
  int live = 0, ready = 0, updated = 0, draining = 0;
  int blocked = 0;                              // wishes that were refused
  std::string blocked_reason, blocked_message;  // of the first of them
  bool rolling = false;                         // old replicas are left
  bool wishing = false;                         // replicas are wished for or starting
  bool too_small = false;                       // the maximums leave fewer than are wanted
  // What is wrong with replicas or with the Service; empty where nothing is.
  std::string trouble, trouble_message;
};

// Sets everything but what the caller knows better (selector, waitingSince). Pure.
void FillStatus(const core::Service& service, const ServiceFacts& facts, std::int64_t generation,
                TimePoint now, api::GPUServiceStatus* status);
// Of a service whose spec cannot be run: what runs goes on, and the message says what to mend.
void FillMisconfigured(const std::string& message, std::int64_t generation, TimePoint now,
                       api::GPUServiceStatus* status);

}  // namespace bimetal::op
