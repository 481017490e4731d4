#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/metrics/families.h"

namespace bimetal::op {

// Values of a family's labels, in their order.
using LabelValues = std::vector<std::string>;

// Observations of one series, in seconds. Bounds ascend; the last bucket (+Inf) is implied.
struct Distribution {
  explicit Distribution(const std::vector<double>& bucket_bounds)
      : bounds(&bucket_bounds), counts(bucket_bounds.size() + 1, 0) {}
  void Observe(double seconds);

  const std::vector<double>* bounds;
  std::vector<std::uint64_t> counts;  // per bucket, not cumulated
  double sum = 0;
};

// Collects series into families for one scrape, in the order in which families are begun. Series of
// one family are sorted by their labels; those with the same labels become one (see Merge). Used on
// one thread.
class Exposition {
 public:
  enum class Merge { kSum, kFirst };

  // Rows beyond `max_series` of a family are dropped and added to `dropped`, which outlives this.
  Exposition(std::size_t max_series, std::map<std::string, std::uint64_t>* dropped);

  void Add(const Family& family, const LabelValues& labels, double value);
  void Add(const Family& family, const LabelValues& labels, const Distribution& distribution);
  // Ends the family: sorts, merges, cuts. A family without a series is left out.
  void End(const Family& family, Merge merge = Merge::kSum);

  // The Prometheus text format 0.0.4.
  std::string Text() const;

 private:
  prometheus::ClientMetric Series(const Family& family, const LabelValues& labels) const;

  std::size_t max_series_;
  std::map<std::string, std::uint64_t>* dropped_;
  std::vector<prometheus::ClientMetric> open_;
  std::vector<prometheus::MetricFamily> done_;
};

}  // namespace bimetal::op
