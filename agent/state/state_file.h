#pragma once

#include <string>

#include "agent/state/saved_state.pb.h"
#include "core/base/result.h"

namespace bimetal::agent {

// The file in which an agent keeps its SavedState, as JSON. It is replaced in one step and flushed
// to the disk, so that a crash leaves the old or the new state, never half of one. One owner
// thread.
class StateFile {
 public:
  // `folder` is made where it is missing, when something is saved.
  explicit StateFile(std::string folder);

  const std::string& path() const { return path_; }

  // Error kNotFound: there is none yet; kData: it is not what Save writes; kUnavailable: it cannot
  // be read.
  Result<SavedState> Load() const;

  // Keeps a file that Load could not read for a person to look at, as agent.json.bad.
  void SetAside() const;

  // Error kUnavailable: the disk refused.
  Status Save(const SavedState& state) const;

 private:
  std::string folder_;
  std::string path_;
};

}  // namespace bimetal::agent
