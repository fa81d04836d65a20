// Timing of all benchmarks: processor seconds of a body, and medians.
#pragma once
#include <algorithm>
#include <vector>

#include "bench/native_yardsticks.hpp"

namespace numemu::bench {

template <class Body>
double seconds(const Body& body) {
  const double start = thread_seconds();
  body();
  return thread_seconds() - start;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace numemu::bench
