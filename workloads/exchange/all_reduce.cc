#include "workloads/exchange/all_reduce.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <span>
#include <utility>

#include "workloads/program/stop.h"

namespace bimetal::workloads {
namespace {

using Clock = std::chrono::steady_clock;

// Frames are sent as they lie in memory.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kMagic = 0x4d49'4231;  // "1BIM"
// A stranger that connects and says nothing may hold the root up for this long.
constexpr std::chrono::milliseconds kHelloTimeout{3'000};
constexpr std::chrono::milliseconds kRejoinPause{200};

struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t world = 0;
  std::uint32_t rank = 0;
  std::uint32_t reserved = 0;
  std::uint64_t session = 0;
};

struct FrameHeader {
  std::uint32_t magic = kMagic;
  std::uint32_t count = 0;
  std::uint64_t round = 0;
};

// FNV-1a: both sides only compare.
std::uint64_t HashText(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

Hello MakeHello(const GangPlace& place) {
  Hello hello;
  hello.world = place.world;
  hello.rank = place.rank;
  hello.session = HashText(place.session);
  return hello;
}

template <class T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}
template <class T>
std::span<std::byte> WritableBytesOf(T& value) {
  return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

kernels::DeviceError Failed(const std::string& what) {
  return {kernels::DeviceErrorCode::kFailed, what};
}

Done WithRank(Done done, const char* what, std::uint64_t rank) {
  if (done.ok()) return done;
  return kernels::DeviceError{
      done.error().code,
      std::string(what) + " rank " + std::to_string(rank) + ": " + done.error().message};
}

Done SendFrame(const Socket& socket, std::uint64_t round, const std::vector<std::uint64_t>& values,
               Deadline deadline) {
  FrameHeader header;
  header.count = static_cast<std::uint32_t>(values.size());
  header.round = round;
  KERNELS_TRY(socket.Send(BytesOf(header), deadline));
  return socket.Send(std::as_bytes(std::span(values)), deadline);
}

Done ReceiveFrame(const Socket& socket, std::uint64_t round, std::vector<std::uint64_t>* values,
                  Deadline deadline) {
  FrameHeader header;
  KERNELS_TRY(socket.Receive(WritableBytesOf(header), deadline));
  if (header.magic != kMagic || header.round != round || header.count != values->size()) {
    return Failed("sent round " + std::to_string(header.round) + " with " +
                  std::to_string(header.count) + " values where round " + std::to_string(round) +
                  " with " + std::to_string(values->size()) + " was due");
  }
  return socket.Receive(std::as_writable_bytes(std::span(*values)), deadline);
}

std::string MissingRanks(const std::vector<Socket>& members) {
  std::string missing;
  for (std::size_t rank = 1; rank < members.size(); ++rank) {
    if (!members[rank].is_open()) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return missing;
}

}  // namespace

Outcome<AllReduce> AllReduce::Join(const GangPlace& place) {
  if (place.rank == 0 && place.world > 1) {
    KERNELS_TRY_ASSIGN(Socket listener, Listen(place.master_port));
    return JoinOn(place, std::move(listener));
  }
  AllReduce gang(place);
  if (place.world > 1) KERNELS_TRY(gang.MeetAsMember());
  return gang;
}

Outcome<AllReduce> AllReduce::JoinOn(const GangPlace& place, Socket listener) {
  AllReduce gang(place);
  KERNELS_TRY(gang.MeetAsRoot(listener));
  return gang;
}

Done AllReduce::MeetAsRoot(const Socket& listener) {
  const Deadline deadline = Clock::now() + place_.join_timeout;
  const Hello own = MakeHello(place_);
  members_.resize(place_.world);
  while (!MissingRanks(members_).empty()) {
    Outcome<Socket> accepted = Accept(listener, deadline);
    if (!accepted.ok()) {
      return kernels::DeviceError{
          accepted.error().code,
          "waiting for ranks " + MissingRanks(members_) + ": " + accepted.error().message};
    }
    Hello hello;
    const Done said = accepted.value().Receive(WritableBytesOf(hello),
                                               std::min(deadline, Clock::now() + kHelloTimeout));
    const bool ours = said.ok() && hello.magic == kMagic && hello.world == own.world &&
                      hello.session == own.session && hello.rank > 0 && hello.rank < own.world;
    if (!ours) {
      std::fprintf(stderr, "turned away a connection that is no member of this gang\n");
      continue;
    }
    members_[hello.rank] = std::move(accepted.value());  // the later one: a member that came again
  }
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    KERNELS_TRY(WithRank(members_[rank].Send(BytesOf(own), deadline), "welcoming", rank));
  }
  return kernels::Success();
}

Done AllReduce::MeetAsMember() {
  const Deadline deadline = Clock::now() + place_.join_timeout;
  for (;;) {
    KERNELS_TRY_ASSIGN(root_, ConnectWithRetry(place_.master_host, place_.master_port, deadline));
    Done met = root_.Send(BytesOf(MakeHello(place_)), deadline);
    Hello welcome;
    if (met.ok()) met = root_.Receive(WritableBytesOf(welcome), deadline);
    if (met.ok()) {
      if (welcome.magic == kMagic && welcome.session == HashText(place_.session)) return met;
      met = Failed("the answer is not from this gang");
    }
    // An earlier attempt's rank 0 may still be there and hang up: the right one comes.
    if (StopRequested() || Clock::now() + kRejoinPause >= deadline) {
      return WithRank(std::move(met), "meeting", 0);
    }
    SleepUnlessStopped(kRejoinPause);
  }
}

Done AllReduce::Sum(std::uint64_t round, std::vector<std::uint64_t>* values) {
  if (place_.world == 1) return kernels::Success();
  return place_.rank == 0 ? SumAsRoot(round, values) : SumAsMember(round, values);
}

Done AllReduce::SumAsRoot(std::uint64_t round, std::vector<std::uint64_t>* values) {
  const Deadline deadline = Clock::now() + place_.round_timeout;
  std::vector<std::uint64_t> part(values->size());
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    KERNELS_TRY(
        WithRank(ReceiveFrame(members_[rank], round, &part, deadline), "receiving from", rank));
    for (std::size_t i = 0; i < part.size(); ++i) (*values)[i] += part[i];
  }
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    KERNELS_TRY(WithRank(SendFrame(members_[rank], round, *values, deadline), "sending to", rank));
  }
  return kernels::Success();
}

Done AllReduce::SumAsMember(std::uint64_t round, std::vector<std::uint64_t>* values) {
  const Deadline deadline = Clock::now() + place_.round_timeout;
  KERNELS_TRY(WithRank(SendFrame(root_, round, *values, deadline), "sending to", 0));
  return WithRank(ReceiveFrame(root_, round, values, deadline), "receiving from", 0);
}

}  // namespace bimetal::workloads
