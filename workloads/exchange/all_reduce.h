#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/net/socket.h"

namespace bimetal::workloads {

// A rank's place in its gang.
struct GangPlace {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string master_host;
  std::uint16_t master_port = 0;
  // Job uid and attempt: members of another job or of an earlier attempt are turned away.
  std::string session;
  std::chrono::milliseconds join_timeout{120'000};
  std::chrono::milliseconds round_timeout{30'000};
};

// Sums vectors of integers over all ranks through rank 0. One thread at a time.
class AllReduce {
 public:
  // Rank 0 listens, the others connect; returns once all have met. Errors say who is missing.
  static Outcome<AllReduce> Join(const GangPlace& place);
  // The same with a listener that is already bound (rank 0).
  static Outcome<AllReduce> JoinOn(const GangPlace& place, Socket listener);

  // Replaces `values` by the sum over all ranks. Every rank calls it with the same round and size.
  Done Sum(std::uint64_t round, std::vector<std::uint64_t>* values);

 private:
  explicit AllReduce(const GangPlace& place) : place_(place) {}
  Done MeetAsRoot(const Socket& listener);
  Done MeetAsMember();
  Done SumAsRoot(std::uint64_t round, std::vector<std::uint64_t>* values);
  Done SumAsMember(std::uint64_t round, std::vector<std::uint64_t>* values);

  GangPlace place_;
  std::vector<Socket> members_;  // root: by rank, the root's own closed
  Socket root_;                  // member: to rank 0
};

}  // namespace bimetal::workloads
