// What this machine's memory gives: memcpy and STREAM's triad on the same number of threads as the
// host back end uses. Prints "memcpy GB/s" and "triad GB/s", each the best and the median of the
// repetitions; the bytes are those that the program asks for, as STREAM counts.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kRepeats = 24;
constexpr double kScalar = 3.0;

// Runs `work(begin, end)` over 0..count-1 on all threads; nanoseconds.
double Time(std::size_t threads, std::size_t count,
            const std::function<void(std::size_t, std::size_t)>& work) {
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < threads; ++i) {
      pool.emplace_back(work, count * i / threads, count * (i + 1) / threads);
    }
    work(0, count / threads);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

void Report(const char* name, double bytes, std::vector<double> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf("%s %.3f %.3f\n", name, bytes / nanoseconds.front(),
              bytes / nanoseconds[nanoseconds.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bimetal-stream THREADS BYTES-AN-ARRAY\n");
    return 64;
  }
  const auto threads = static_cast<std::size_t>(std::max(1L, std::atol(argv[1])));
  const std::size_t count = std::strtoull(argv[2], nullptr, 10) / sizeof(double);
  if (count == 0) return 64;
  // Written by the threads that use them, not by this one.
  const std::unique_ptr<double[]> a(new double[count]);
  const std::unique_ptr<double[]> b(new double[count]);
  const std::unique_ptr<double[]> c(new double[count]);
  Time(threads, count, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) a[i] = 1, b[i] = 2, c[i] = 0;
  });
  std::vector<double> copies;
  std::vector<double> triads;
  for (std::size_t i = 0; i < kRepeats; ++i) {
    copies.push_back(Time(threads, count, [&](std::size_t begin, std::size_t end) {
      std::memcpy(&c[begin], &a[begin], (end - begin) * sizeof(double));
    }));
    triads.push_back(Time(threads, count, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) c[k] = a[k] + kScalar * b[k];
    }));
  }
  if (c[count / 2] != 7.0) return 1;
  const auto bytes = static_cast<double>(count * sizeof(double));
  Report("memcpy", 2 * bytes, copies);
  Report("triad", 3 * bytes, triads);
  return 0;
}
