#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/queue/cycle.h"

// What a plan says of jobs "uid-NAME", by their names.
namespace bimetal::core::testing {

inline std::vector<std::string> Started(const queue::Plan& plan) {
  std::vector<std::string> jobs;
  for (const queue::Assignment& a : plan.assignments) jobs.push_back(a.job.value.substr(4));
  return jobs;
}

inline const queue::Refusal& RefusalOf(const queue::Plan& plan, const std::string& job) {
  for (const queue::Refusal& refusal : plan.refusals) {
    if (refusal.job.value == "uid-" + job) return refusal;
  }
  ADD_FAILURE() << job << " was not refused";
  static const queue::Refusal none;
  return none;
}

}  // namespace bimetal::core::testing
