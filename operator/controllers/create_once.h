#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "core/base/result.h"
#include "kube/client/client.h"

namespace bimetal::op {

// A create that is safe to repeat, because its name is deterministic: tried a few times where the
// server asks for patience; an object of that name counts as ours if its `label` is `uid`. Blocks:
// for the writer's threads.
template <class T>
Status CreateOnce(kube::Client& client, const std::string& name_space, const std::string& name,
                  const std::string& body, const char* label, const std::string& uid) {
  constexpr int kTries = 5;
  for (int attempt = 1;; ++attempt) {
    const auto created = client.CreateRaw(kube::InfoOf<T>(), name_space, body);
    if (created) return {};
    if (created.error().code == ErrorCode::kAlreadyExists) {
      BIMETAL_TRY_ASSIGN(const T existing, client.Get<T>(name_space, name));
      const auto found = existing.metadata().labels().find(label);
      if (found != existing.metadata().labels().end() && found->second == uid) return {};
      return tl::unexpected<Error>(created.error());
    }
    if (!IsRetriable(created.error()) || attempt == kTries)
      return tl::unexpected<Error>(created.error());
    const std::int64_t pause =
        std::clamp<std::int64_t>(created.error().retry_after_ms, 100 * attempt, 5000);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

}  // namespace bimetal::op
