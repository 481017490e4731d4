#pragma once

#include <optional>
#include <string>

#include "api/gpunode.pb.h"
#include "cli/flags.h"
#include "cli/run.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "kube/client/client.h"

namespace bimetal::cli {

// `bimetal validate NODE`: asks for a run by the GPUNode's spec.revalidate, with the caller's own
// rights; with --wait blocks until there is a verdict. Errors: the node stays shut (kInvalid, with
// its message), no verdict within half an hour (kDeadline), and those of the client.
Result<Answer> Validate(const CommandLine& line, kube::Client& client, const Clock& clock);

// `bimetal validate --profile FILE --dry-run`: what the profile would change. Writes nothing.
Result<Answer> TryProfile(const CommandLine& line, kube::Client& client, const Clock& clock);

// The word for spec.revalidate: "L2 2026-01-31T12:00:00Z"; without a level the time alone.
std::string RevalidateWord(const std::string& level, TimePoint now);

// What became of a run that `word` asked for: nothing yet, or the phase that followed. Pure.
struct Verdict {
  bool admitted = false;
  std::string text;
};
std::optional<Verdict> VerdictOn(const api::GPUNode& node, const std::string& word);

}  // namespace bimetal::cli
