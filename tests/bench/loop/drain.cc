// p4: a deep queue drains once it is opened, with room for all of it.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/loop/benches.h"
#include "tests/bench/loop/operator_loop.h"
#include "tests/bench/measure.h"

namespace bimetal::bench {
namespace {

constexpr Micros kSecond = 1'000'000;
constexpr Micros kBegin = 10 * kSecond;
constexpr int kNodes = 1300, kShallow = 12;
constexpr Micros kOpen = 30 * kSecond;  // until then the queues are stopped

struct Drain {
  double seconds = 0;  // until the last pod of the deep queue runs
  std::vector<double>
      decided;         // waits of its jobs until they are decided, since the queues are open
  double shallow = 0;  // the longest of the other queues'
  bool whole = true;   // all run, each in one rack
};

api::GPUJob RackJob(const std::string& name, const std::string& queue) {
  api::GPUJob job = MakeLoopJob(name, queue, 4, 4);
  auto* topology = job.mutable_spec()->mutable_roles(0)->mutable_topology();
  topology->set_level(kRackLabel);
  topology->set_mode("Required");
  return job;
}

Drain DrainQueue(int depth) {
  OperatorLoop loop({.nvidia_nodes = kNodes, .devices = 8, .racks = 26}, {});
  AddQueue(loop.store(), "all", "").mutable_spec()->set_stop_policy("Hold");
  std::vector<std::string> queues = {"deep"};
  for (int i = 0; i < kShallow; ++i) queues.push_back("shallow-" + std::to_string(i));
  for (const auto& name : queues) {
    api::GPUQueue& queue = AddQueue(loop.store(), name, "all");
    queue.mutable_spec()->mutable_fair_share()->set_weight(1);
    queue.mutable_spec()->mutable_fair_share()->set_half_life("1h");
  }
  loop.Start();
  loop.Change(kOpen,
              [](op::Store& store) { store.queues["all"].mutable_spec()->clear_stop_policy(); });
  Micros when = kBegin + 5 * kSecond;
  for (int i = 0; i < depth; ++i, when += 1000) {
    loop.Submit(when, RackJob("deep-" + std::to_string(i), "deep"), 600 * kSecond);
  }
  for (std::size_t q = 1; q < queues.size(); ++q) {
    for (const char* number : {"-a", "-b"}) {
      loop.Submit(when, RackJob(queues[q] + number, queues[q]), 600 * kSecond);
    }
  }
  loop.Run(kBegin + 120 * kSecond);
  Drain out;
  const auto& lives = loop.lives();
  const double room = static_cast<double>(kOpen) * 1e-6;
  for (const auto& [uid, life] : lives) {
    out.whole = out.whole && life.decided && life.nodes.size() == 4;
    if (!life.decided || !life.running) continue;
    std::set<std::string> racks;
    for (const auto& node : life.nodes) {
      racks.insert(loop.store().nodes.at(node).node.labels.at(kRackLabel));
    }
    out.whole = out.whole && racks.size() == 1;
    const double wait = *life.decided - room;
    if (uid.starts_with("deep")) {
      out.decided.push_back(wait);
      out.seconds = std::max(out.seconds, *life.running - room);
    } else {
      out.shallow = std::max(out.shallow, wait);
    }
  }
  std::printf(
      "%d deep: all run %.2f s after the queues were opened; decided after p50 %.2f s, p90 %.2f s; "
      "the 12 shallow queues after %.2f s at most; %.2f s of CPU\n",
      depth, out.seconds, Quantile(out.decided, 0.5), Quantile(out.decided, 0.9), out.shallow,
      loop.cpu_seconds());
  return out;
}

}  // namespace

int P4(int part) {
  Conditions conditions;
  const Drain flat = DrainQueue(67 / part), deep = DrainQueue(536 / part);
  conditions.Require(flat.whole && deep.whole, "every job runs whole, in one rack");
  conditions.Require(Quantile(deep.decided, 0.9) <= Quantile(flat.decided, 0.9) + 0.5 &&
                         deep.shallow <= flat.shallow + 0.5,
                     "the wait until a decision does not depend on the depth (within 0.5 s)");
  conditions.Require(deep.seconds <= 15, "the queue drains within 15 s");
  std::printf(
      "in virtual time: pods are made, bound and started at the measured rate of the API "
      "server; the part on a live cluster is not run here\n");
  std::printf("p4 %.1f s bar 15\n", deep.seconds);
  return conditions.ExitStatus();
}

}  // namespace bimetal::bench
