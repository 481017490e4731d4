// p1, p2, p3: the generators of Kueue's own performance tests through the operator's loop.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/loop/benches.h"
#include "tests/bench/loop/operator_loop.h"
#include "tests/bench/measure.h"

namespace bimetal::bench {
namespace {

constexpr Micros kMilli = 1000, kSecond = 1'000'000;
constexpr Micros kBegin = 10 * kSecond;      // when the fleet has settled
constexpr Micros kLongest = 1200 * kSecond;  // of a run

struct Class {
  const char* name;
  int jobs;  // in each queue
  int pods, devices_per_pod;
  Micros run_time, every;
  std::int64_t priority;
};

struct Generator {
  const char* name;
  int cohorts, queues;  // queues of each cohort
  std::int64_t guaranteed, borrow;
  std::array<Class, 3> classes;
  FleetOptions fleet;
  bool topology = false;  // required, preferred, none, in turn
};

struct Outcome {
  double cpu = 0, seconds = 0;
  double cycle_ms = 0;  // mean
  std::map<std::string, std::vector<double>> waits, starts;
  bool all_ended = false;
  std::size_t required = 0, required_apart = 0;  // jobs, and those in more than one rack
};

void AddQueues(const Generator& g, op::Store& store) {
  for (int c = 0; c < g.cohorts; ++c) {
    const std::string cohort = "cohort-" + std::to_string(c);
    AddQueue(store, cohort, "");
    for (int q = 0; q < g.queues; ++q) {
      api::GPUQueue& queue = AddQueue(store, cohort + "-" + std::to_string(q), cohort);
      auto* quota = queue.mutable_spec()->add_quotas();
      quota->set_device_class("nvidia");
      quota->set_guaranteed(static_cast<int>(g.guaranteed));
      quota->set_limit(static_cast<int>(g.guaranteed + g.borrow));
      queue.mutable_spec()->mutable_preemption()->set_within_queue("LowerPriority");
      queue.mutable_spec()->mutable_preemption()->set_reclaim("Any");
    }
    auto* whole = store.queues[cohort].mutable_spec()->add_quotas();
    whole->set_device_class("nvidia");
    whole->set_guaranteed(static_cast<int>(g.guaranteed * g.queues));
    whole->set_limit(static_cast<int>(g.guaranteed * g.queues));
  }
}

int SubmitAll(const Generator& g, int part, OperatorLoop& loop,
              std::map<std::string, const Class*>* class_of, std::set<std::string>* required) {
  int jobs = 0;
  for (int c = 0; c < g.cohorts; ++c) {
    for (int q = 0; q < g.queues; ++q) {
      const std::string queue = "cohort-" + std::to_string(c) + "-" + std::to_string(q);
      for (const Class& one : g.classes) {
        for (int i = 0; i < std::max(1, one.jobs / part); ++i) {
          const std::string name =
              "q" + queue.substr(7) + "-" + std::string(one.name) + "-" + std::to_string(i);
          api::GPUJob job = MakeLoopJob(name, queue, one.pods, one.devices_per_pod);
          job.mutable_spec()->set_priority_class_name(one.name);
          if (g.topology && i % 3 != 2) {
            auto* topology = job.mutable_spec()->mutable_roles(0)->mutable_topology();
            topology->set_level(kRackLabel);
            topology->set_mode(i % 3 == 0 ? "Required" : "Preferred");
            if (i % 3 == 0) required->insert(name);
          }
          loop.Submit(kBegin + i * one.every, std::move(job), one.run_time);
          (*class_of)[name] = &one;
          ++jobs;
        }
      }
    }
  }
  return jobs;
}

Outcome RunGenerator(const Generator& g, int part) {
  OperatorLoop loop(g.fleet, {.pods_write = false});
  for (const Class& one : g.classes) loop.store().priorities[one.name] = one.priority;
  AddQueues(g, loop.store());
  loop.Start();
  std::map<std::string, const Class*> class_of;
  std::set<std::string> required;
  const int jobs = SubmitAll(g, part, loop, &class_of, &required);
  for (Micros until = kBegin; until < kLongest && !loop.AllEnded(); until += 30 * kSecond) {
    loop.Run(until + 30 * kSecond);
    std::size_t ended = 0;
    for (const auto& [uid, life] : loop.lives()) ended += life.ended ? 1 : 0;
    std::fprintf(stderr, "%s: %zu of %d jobs after %lld s, %.1f s of CPU, %lld cycles\n", g.name,
                 ended, jobs, static_cast<long long>((loop.future().now() - kBegin) / kSecond),
                 loop.cpu_seconds(), static_cast<long long>(loop.cycles()));
  }
  if (!loop.AllEnded()) {
    for (const auto& [text, count] : loop.Unended()) {
      std::printf("%d jobs have not ended: %s\n", count, text.c_str());
    }
  }
  Outcome out;
  out.cpu = loop.cpu_seconds();
  out.all_ended = loop.AllEnded();
  const auto rack_of = [&](const std::string& node) {
    return loop.store().nodes.at(node).node.labels.at(kRackLabel);
  };
  double last = 0;
  int restarts = 0;
  for (const auto& [uid, life] : loop.lives()) {
    const Class& one = *class_of.at(uid);
    if (life.decided) out.waits[one.name].push_back(*life.decided - life.created);
    if (life.running) out.starts[one.name].push_back(*life.running - life.created);
    if (life.ended) last = std::max(last, *life.ended);
    restarts += std::max(0, life.starts - 1);
    if (!required.contains(uid)) continue;
    ++out.required;
    std::set<std::string> racks;
    for (const auto& node : life.nodes) racks.insert(rack_of(node));
    out.required_apart += racks.size() == 1 ? 0 : 1;
  }
  out.seconds = last - static_cast<double>(kBegin) * 1e-6;
  out.cycle_ms =
      loop.cycle_seconds() * 1000 / static_cast<double>(std::max<std::int64_t>(1, loop.cycles()));
  std::printf(
      "%s: %d jobs in %d queues, %.1f s of virtual time (%.0f jobs/s), API server busy "
      "%.1f s, %d restarts\n",
      g.name, jobs, g.cohorts * g.queues, out.seconds, jobs / out.seconds,
      static_cast<double>(loop.api().busy()) * 1e-6, restarts);
  std::int64_t requests = 0;
  for (const auto& [what, count] : loop.api().requests()) requests += count;
  std::printf("requests to the API server: %.1f a job:", static_cast<double>(requests) / jobs);
  for (const auto& [what, count] : loop.api().requests()) {
    std::printf(" %s %.2f;", what.c_str(), static_cast<double>(count) / jobs);
  }
  std::printf("\n%lld cycles of %.1f ms, %.1f s of %.1f s of CPU\n",
              static_cast<long long>(loop.cycles()), out.cycle_ms, loop.cycle_seconds(), out.cpu);
  for (const Class& one : g.classes) {
    std::printf("class %s: wait until decided mean %.2f s, p90 %.2f s; until running mean %.2f s\n",
                one.name, Mean(out.waits[one.name]), Quantile(out.waits[one.name], 0.9),
                Mean(out.starts[one.name]));
  }
  return out;
}

int Finish(const char* name, const Outcome& outcome, double bar, Conditions& conditions) {
  conditions.Require(outcome.all_ended, "every job ends");
  conditions.Require(outcome.cpu <= bar, "the CPU seconds are within the bar");
  std::printf("the part of this bench on a live cluster is not run here\n");
  std::printf("%s %.1f CPU-s bar %.0f\n", name, outcome.cpu, bar);
  return conditions.ExitStatus();
}

Generator Baseline() {
  return {.name = "p1",
          .cohorts = 5,
          .queues = 6,
          .guaranteed = 20,
          .borrow = 100,
          .classes = {Class{"small", 350, 1, 1, 200 * kMilli, 100 * kMilli, 50},
                      Class{"medium", 100, 1, 5, 500 * kMilli, 500 * kMilli, 100},
                      Class{"large", 50, 1, 20, 1000 * kMilli, 1200 * kMilli, 200}},
          // Room enough that quotas alone decide, as where there are no nodes.
          .fleet = {.nvidia_nodes = 20, .devices = 64}};
}

}  // namespace

int P1(int part) {
  Conditions conditions;
  Outcome outcome = RunGenerator(Baseline(), part);
  conditions.Require(Mean(outcome.waits["large"]) <= 6, "large jobs wait 6 s at most");
  conditions.Require(Mean(outcome.waits["small"]) <= 60, "small jobs wait 60 s at most");
  return Finish("p1", outcome, 30, conditions);
}

int P2(int part) {
  Conditions conditions;
  const Generator all = {.name = "p2",
                         .cohorts = 10,
                         .queues = 100,
                         .guaranteed = 20,
                         .borrow = 100,
                         .classes = {Class{"small", 35, 1, 1, 150 * kMilli, 60 * kMilli, 50},
                                     Class{"medium", 11, 1, 5, 350 * kMilli, 300 * kMilli, 100},
                                     Class{"large", 4, 1, 20, 700 * kMilli, 700 * kMilli, 200}},
                         .fleet = {.nvidia_nodes = 200, .devices = 128}};
  // The same jobs and the same devices in a tenth of the queues.
  Generator few = all;
  few.name = "p2 with 100 queues";
  few.queues = 10;
  few.guaranteed *= 10;
  few.borrow *= 10;
  for (Class& one : few.classes) {
    one.jobs *= 10;
    one.every /= 10;
  }
  // A part of the jobs tells as much of the cost of a cycle, sooner.
  const int sample = part * 5;
  const Outcome less = RunGenerator(few, sample);
  const Outcome more = RunGenerator(all, sample);
  std::printf("a cycle with 100 queues %.1f ms, with 1,000 queues %.1f ms, one in %d of the jobs\n",
              less.cycle_ms, more.cycle_ms, sample);
  conditions.Require(
      more.cycle_ms <= 1.5 * less.cycle_ms,
      "the cost of a cycle does not grow with the number of queues (by half at most)");
  const Outcome outcome = part == sample ? more : RunGenerator(all, part);
  return Finish("p2", outcome, 100, conditions);
}

int P3(int part) {
  Conditions conditions;
  const Generator g = {.name = "p3",
                       .cohorts = 5,
                       .queues = 6,
                       .guaranteed = 170,
                       .borrow = 850,
                       .classes = {Class{"small", 350, 2, 1, 200 * kMilli, 100 * kMilli, 50},
                                   Class{"medium", 100, 4, 1, 500 * kMilli, 500 * kMilli, 100},
                                   Class{"large", 50, 8, 1, 1000 * kMilli, 1200 * kMilli, 200}},
                       .fleet = {.nvidia_nodes = 640, .devices = 8, .racks = 10},
                       .topology = true};
  const Outcome outcome = RunGenerator(g, part);
  std::printf("%zu jobs require one rack, %zu of them are in more\n", outcome.required,
              outcome.required_apart);
  conditions.Require(outcome.required > 0 && outcome.required_apart == 0,
                     "every required job is inside one rack");
  return Finish("p3", outcome, 60, conditions);
}

}  // namespace bimetal::bench
