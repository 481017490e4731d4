#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/devices/inventory.h"

namespace bimetal::agent {

// What a report may hold.
inline constexpr std::size_t kMaxFindings = 64;

struct DiagnoseOptions {
  // Opens device files to see whether this process may: only where it is the user's own question
  // (bimetal doctor on "/"), never from the agent.
  bool open_nodes = false;
  // Looks at processes: who uses a GPU, and whether HSA_OVERRIDE_GFX_VERSION is set. Of a process's
  // environment nothing else is kept or told.
  bool processes = true;
  // Of all processes, not only of those that use a GPU by the inventory: for a person who asks
  // once.
  bool every_process = true;
  // Tells what comes and goes with the load (a link's speed, the power limit). For a person who
  // looks now; as a state of a node it would be news at every look.
  bool fleeting = true;
};

struct Diagnosis {
  // Sorted, the gravest first, then bottom up (rules.h); at most kMaxFindings, each once.
  std::vector<Finding> findings;
  // Parts of the machine that cannot be seen from here, as "/dev: why". What they would show is
  // unknown, not healthy.
  std::vector<std::string> not_seen;
};

// Whether anything under `root` can tell of GPUs at all; else why not.
std::string WhyBlind(const std::string& root);

// Says what is wrong with the machine under `root` and what to do: the findings of `inventory`
// (which may be empty, and may have been read without any vendor library) with those of the kernel
// log and of every rule of data/rules.csv that holds. Reads files alone; never fails and calls no
// library. Read the inventory without the kernel log, or its lines come twice and are dropped here.
Diagnosis Diagnose(const std::string& root, const Inventory& inventory,
                   const DiagnoseOptions& options = {});

// The same with the findings put into the inventory, as the agent reports it.
void AddDiagnosis(const std::string& root, Inventory& inventory,
                  const DiagnoseOptions& options = {});

}  // namespace bimetal::agent
