#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "agent/devices/inventory.h"
#include "core/base/time.h"

namespace bimetal::agent {

// Looks at the machine again and again in a thread of its own. Thread-safe.
class Enumerator {
 public:
  using Read = std::function<Inventory()>;
  // Called from the enumerator's thread.
  using OnInventory = std::function<void(Inventory, Millis took)>;

  // `clock` must outlive it, and the thread too, where Stop returned false.
  Enumerator(Read read, Millis interval, const Clock& clock, OnInventory on_inventory);
  ~Enumerator();
  Enumerator(const Enumerator&) = delete;
  Enumerator& operator=(const Enumerator&) = delete;

  // How long the look in progress has taken so far; nothing between two looks.
  std::optional<Millis> InProgress() const;

  // Ends the thread; no call of `on_inventory` follows. False where a look did not come back in
  // `patience`: its thread is left to itself, the process should end soon. Idempotent.
  bool Stop(Millis patience);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // also held by the thread
};

}  // namespace bimetal::agent
