#include "bench/steady_ceiling.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>

namespace numemu::bench {

void SteadyCeiling::wait() {
  std::deque<double> window;
  steady_ = false;
  for (int i = 0; i < kLimit && !steady_; ++i) {
    window.push_back(measure_());
    if (window.size() > kWindow) window.pop_front();
    const auto [low, high] = std::minmax_element(window.begin(), window.end());
    value_ = *high;
    steady_ = window.size() == kWindow && *low >= (1 - kSpread) * *high;
  }
  if (!steady_)
    std::fprintf(stderr, "the clock of this core never settled: all rounds count, busy or not\n");
}

bool SteadyCeiling::counts(double ceiling) const {
  return ceiling >= kClose * value_ && value_ >= kClose * ceiling;
}

int SteadyCeiling::rounds(int wanted, const std::function<void()>& round,
                          const std::function<void(double ceiling)>& keep) {
  int kept = 0;
  for (int waits = 0; kept == 0; ++waits) {
    if (waits > 0) wait();
    const bool all = !steady_ || waits == kWaits;
    for (int i = 0; i < kTries * wanted && kept < wanted; ++i) {
      const double before = measure_();
      round();
      const double after = measure_();
      if (!all && !(counts(before) && counts(after))) continue;
      keep(0.5 * (before + after));
      ++kept;
    }
  }
  return kept;
}

}  // namespace numemu::bench
