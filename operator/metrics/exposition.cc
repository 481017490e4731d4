#include "operator/metrics/exposition.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "core/base/result.h"

namespace bimetal::op {
namespace {

prometheus::MetricType TypeOf(FamilyType type) {
  switch (type) {
    case FamilyType::kGauge:
      return prometheus::MetricType::Gauge;
    case FamilyType::kCounter:
      return prometheus::MetricType::Counter;
    case FamilyType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

}  // namespace

void Distribution::Observe(double seconds) {
  const auto bucket = std::lower_bound(bounds->begin(), bounds->end(), seconds);
  ++counts[static_cast<std::size_t>(bucket - bounds->begin())];
  sum += seconds;
}

Exposition::Exposition(std::size_t max_series, std::map<std::string, std::uint64_t>* dropped)
    : max_series_(max_series), dropped_(dropped) {}

prometheus::ClientMetric Exposition::Series(const Family& family, const LabelValues& labels) const {
  prometheus::ClientMetric out;
  std::size_t i = 0;
  for (std::size_t begin = 0; begin < family.labels.size(); ++i) {
    const auto end = std::min(family.labels.find(' ', begin), family.labels.size());
    BIMETAL_CHECK(i < labels.size());
    out.label.push_back({std::string(family.labels.substr(begin, end - begin)), labels[i]});
    begin = end + 1;
  }
  BIMETAL_CHECK(i == labels.size());
  return out;
}

void Exposition::Add(const Family& family, const LabelValues& labels, double value) {
  auto& series = open_.emplace_back(Series(family, labels));
  if (family.type == FamilyType::kCounter) {
    series.counter.value = value;
  } else {
    series.gauge.value = value;
  }
}

void Exposition::Add(const Family& family, const LabelValues& labels,
                     const Distribution& distribution) {
  auto& histogram = open_.emplace_back(Series(family, labels)).histogram;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < distribution.counts.size(); ++i) {
    count += distribution.counts[i];
    const bool last = i == distribution.bounds->size();
    histogram.bucket.push_back(
        {count, last ? std::numeric_limits<double>::infinity() : (*distribution.bounds)[i]});
  }
  histogram.sample_count = count;
  histogram.sample_sum = distribution.sum;
}

void Exposition::End(const Family& family, Merge merge) {
  std::stable_sort(open_.begin(), open_.end(),
                   [](const auto& a, const auto& b) { return a.label < b.label; });
  std::vector<prometheus::ClientMetric> series;
  for (auto& next : open_) {
    if (!series.empty() && series.back().label == next.label) {
      if (merge == Merge::kSum) {
        series.back().gauge.value += next.gauge.value;
        series.back().counter.value += next.counter.value;
      }
    } else if (series.size() >= max_series_) {
      ++(*dropped_)[std::string(family.name)];
    } else {
      series.push_back(std::move(next));
    }
  }
  open_.clear();
  if (series.empty()) return;
  done_.push_back(
      {std::string(family.name), std::string(family.help), TypeOf(family.type), std::move(series)});
}

std::string Exposition::Text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, done_);
  return std::move(out).str();
}

}  // namespace bimetal::op
