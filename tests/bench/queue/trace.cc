#include "tests/bench/queue/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "core/base/time.h"
#include "tests/bench/queue/python_random.h"

namespace bimetal::bench {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "bimetal-bench-queue: %s\n", message.c_str());
  std::exit(2);
}

// Rows of a comma-separated file without quotes, after its header.
std::vector<std::vector<std::string>> ReadCsv(const std::string& path, std::size_t columns) {
  std::ifstream file(path);
  if (!file) Die("cannot read " + path + "; set BIMETAL_SHARED to the folder that holds traces/");
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    std::vector<std::string> row;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) row.push_back(cell);
    if (row.size() < columns) {
      Die(path + ": row " + std::to_string(rows.size() + 2) + " has too few columns");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

double Number(const std::string& text, const std::string& path) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') Die(path + ": \"" + text + "\" is not a number");
  return value;
}

bool IsDistributed(const Throughput& row) {
  return row.model != "Recommendation" && row.model != "A3C" && row.model != "CycleGAN";
}

// The models in the order of the artifact's job table.
std::vector<std::pair<std::string, std::string>> JobTable() {
  std::vector<std::pair<std::string, std::string>> table;
  const auto add = [&](const char* model, std::initializer_list<const char*> batches) {
    for (const char* batch : batches) table.emplace_back(model, batch);
  };
  add("ResNet-18", {"16", "32", "64", "128", "256"});
  add("ResNet-50", {"16", "32", "64", "128"});
  add("Transformer", {"16", "32", "64", "128", "256"});
  add("LM", {"5", "10", "20", "40", "80"});
  add("Recommendation", {"512", "1024", "2048", "4096", "8192"});
  add("A3C", {""});
  add("CycleGAN", {""});
  return table;
}

int DrawDevices(PythonRandom& random) {
  const double r = random.Uniform(0, 1);
  if (r >= 0.95) return 8;
  if (r >= 0.8) return 4;
  return r >= 0.7 ? 2 : 1;
}

double DrawRunTime(PythonRandom& random) {
  const bool is_long = random.Random() >= 0.8;
  return 60 * std::pow(10.0, is_long ? random.Uniform(3, 4) : random.Uniform(1.5, 3));
}

}  // namespace

std::string TraceFolder() {
  if (const char* shared = std::getenv("BIMETAL_SHARED")) return std::string(shared) + "/traces";
  return std::string(BIMETAL_SOURCE_DIR) + "/../shared/traces";
}

std::vector<Throughput> ReadThroughputs(const std::string& folder) {
  const std::string path = folder + "/gavel/throughputs_isolated.csv";
  std::vector<Throughput> table;
  for (const auto& row : ReadCsv(path, 6)) {
    table.push_back(Throughput{.model = row[0],
                               .batch = row[1],
                               .devices = static_cast<int>(Number(row[2], path)),
                               .k80 = Number(row[3], path),
                               .p100 = Number(row[4], path),
                               .v100 = Number(row[5], path)});
  }
  if (table.empty()) Die(path + " is empty");
  return table;
}

std::vector<TraceJob> ReadPhilly(const std::string& folder, const std::vector<Throughput>& table,
                                 std::uint64_t seed) {
  const std::string path = folder + "/philly/philly.csv";
  std::vector<TraceJob> jobs;
  for (const auto& row : ReadCsv(path, 5)) {
    if (row[0] < "2017-10-02" || row[0] >= "2017-10-30") continue;
    TraceJob job{.work = Number(row[1], path),
                 .devices = static_cast<int>(Number(row[2], path)),
                 .rate = {1, 1},
                 .queue = row[4]};
    if (job.work < 60 || job.devices > 32) continue;
    std::string time = row[0] + "Z";
    time[10] = 'T';
    const auto arrival = ParseTime(time);
    if (!arrival) Die(path + ": " + arrival.error().message);
    job.arrival = static_cast<double>(arrival->ms) / 1000;
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) Die(path + " has no jobs of October 2017");
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.arrival < b.arrival; });
  const double start = jobs.front().arrival;
  std::mt19937_64 random(seed);
  for (TraceJob& job : jobs) {
    job.arrival -= start;
    const Throughput& model = table[random() % table.size()];
    job.rate[1] = model.p100 / model.v100;
  }
  return jobs;
}

std::vector<TraceJob> GenerateGavel(const std::vector<Throughput>& table, int seed, int count,
                                    double jobs_per_hour, double longest) {
  PythonRandom random(static_cast<std::uint32_t>(seed + 2));
  PythonRandom arrivals(static_cast<std::uint32_t>(seed + 3));
  const auto models = JobTable();
  std::vector<TraceJob> jobs;
  double now = 0;
  while (static_cast<int>(jobs.size()) < count) {
    TraceJob job;
    job.arrival = now;
    job.devices = DrawDevices(random);
    const double run = DrawRunTime(random);
    const Throughput* row = nullptr;
    while (row == nullptr) {
      const auto& [model, batch] = models[random.Choice(models.size())];
      const auto found = std::find_if(table.begin(), table.end(), [&](const Throughput& one) {
        return one.model == model && one.batch == batch && one.devices == job.devices;
      });
      if (found != table.end() && (job.devices == 1 || IsDistributed(*found))) row = &*found;
    }
    job.work = run;
    job.rate = {1, row->p100 / row->v100, row->k80 / row->v100};
    if (run / *std::max_element(job.rate.begin(), job.rate.end()) > longest) continue;
    jobs.push_back(std::move(job));
    if (jobs_per_hour > 0) now += -std::log(1.0 - arrivals.Random()) * 3600 / jobs_per_hour;
  }
  return jobs;
}

}  // namespace bimetal::bench
