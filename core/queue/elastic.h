#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/model/job.h"

// Gangs that may start smaller than they ask: between the sum of the roles' minReplicas and all.
namespace bimetal::core::queue {

// True where some role may have fewer pods than it asks for.
bool IsElastic(const Job& job);

// How many sizes there are below the full gang; 0 where it is not elastic. Size 0 is the smallest.
std::int64_t SmallerSizes(const Job& job);

// `job` at `size` (0 .. SmallerSizes - 1): every role grows from its minimum in step with the
// others, and never beyond what it asks for. Roles never shrink as `size` grows.
Job AtSize(const Job& job, std::int64_t size);

// The smallest gang of `job`: itself where it is not elastic, else made in `*made`.
const Job& Smallest(const Job& job, std::optional<Job>* made);

// The largest of the smaller sizes for which `fits` is true, as a job of that size; nullopt where
// not even the smallest fits. Asks a number of times that grows with the logarithm of the sizes,
// and takes it that what fits a gang fits every smaller one.
std::optional<Job> LargestThatFits(const Job& job, const std::function<bool(const Job&)>& fits);

}  // namespace bimetal::core::queue
