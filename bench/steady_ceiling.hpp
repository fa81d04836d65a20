// Rounds count only at the clock that the core settles at: faster ones ran before it throttled,
// slower ones beside another program.
#pragma once
#include <functional>

namespace numemu::bench {

class SteadyCeiling {
 public:
  /// `measure` gives multiply-adds per second (fma_ceiling(): about 1 ms a call).
  explicit SteadyCeiling(std::function<double()> measure) : measure_(std::move(measure)) {}

  /// Measures until kWindow values in a row differ by at most kSpread; the ceiling is their
  /// largest. After kLimit values it says so on stderr, takes the largest of the last window, and
  /// every round counts.
  void wait();

  double value() const { return value_; }
  bool steady() const { return steady_; }

  /// Runs `round` until it counted `wanted` times, and calls `keep` with the mean of the ceilings
  /// before and after each round that counts. Waits anew where no round counts. Returns how many
  /// did, at least one.
  int rounds(int wanted, const std::function<void()>& round,
             const std::function<void(double ceiling)>& keep);

  static constexpr int kWindow = 20;       ///< 20 ms: longer than a turn of another program
  static constexpr int kLimit = 10'000;    ///< about 10 s
  static constexpr double kSpread = 0.05;  ///< of the largest; at a steady clock below 0.02
  static constexpr double kClose = 0.85;   ///< least ratio of the ceilings of rounds that count
  static constexpr int kTries = 6;         ///< rounds for each that is wanted
  static constexpr int kWaits = 3;         ///< before every round counts

 private:
  bool counts(double ceiling) const;

  std::function<double()> measure_;
  double value_ = 0;
  bool steady_ = false;
};

}  // namespace numemu::bench
