#pragma once

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <vector>

// What the benches of the scheduler measure by.
namespace bimetal::bench {

// Of this thread's processor: what else the machine does must not show.
inline double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double SecondsOf(const std::function<void()>& work) {
  const double begin = CpuSeconds();
  work();
  return CpuSeconds() - begin;
}

// Secondary conditions of the bench: what does not hold is printed and remembered.
class Conditions {
 public:
  void Require(bool holds, const char* what) {
    if (holds) return;
    failed_ = true;
    std::printf("NOT MET: %s\n", what);
  }
  int ExitStatus() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

// The value below which `share` of all lie; 0 where there are none.
inline double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(last * share + 0.5)];
}

inline double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace bimetal::bench
