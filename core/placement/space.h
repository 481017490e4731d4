#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/fleet.h"
#include "core/placement/books.h"

namespace bimetal::core::placement {

// How the free devices of a pool lie.
struct Space {
  struct Largest {
    std::string level, domain;
    std::int64_t devices = 0;
  };
  // For each level, widest first, the domain with the most free devices; levels without a domain
  // are left out.
  std::vector<Largest> largest_free;
  // Thousandths of the free devices that are on nodes with held ones, too; nullopt: none is free.
  std::optional<std::int64_t> fragmentation_milli;
};

// Counts the free usable devices of `vendor` on those of `nodes` that are ready and not cordoned.
// `topology_keys` are labels, widest first. Pure; of equal domains the first by name.
Space SpaceOf(std::vector<const Node*> nodes, const Books& books, Vendor vendor,
              const std::vector<std::string>& topology_keys);

}  // namespace bimetal::core::placement
