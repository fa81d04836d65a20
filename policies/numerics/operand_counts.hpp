// Counts of elements of an operand that overflowed, underflowed or were invalid, and of saturated
// results.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "formats/conversion.hpp"

namespace numemu::policies {

struct OperandCounts {
  std::int64_t elements = 0, overflow = 0, underflow = 0, invalid = 0;

  OperandCounts& operator+=(const OperandCounts& other) {
    elements += other.elements;
    overflow += other.overflow;
    underflow += other.underflow;
    invalid += other.invalid;
    return *this;
  }
  friend bool operator==(const OperandCounts&, const OperandCounts&) = default;
};

/// OperandCounts, added to by several threads: sums of integers, so their order does not matter.
class SharedCounts {
 public:
  void add(const FlagCounts& flags) {
    elements_ += flags.elements;
    overflow_ += flags.overflow;
    underflow_ += flags.underflow;
    invalid_ += flags.invalid;
  }
  void set(const OperandCounts& c) {
    elements_ = c.elements;
    overflow_ = c.overflow;
    underflow_ = c.underflow;
    invalid_ = c.invalid;
  }
  OperandCounts get() const { return {elements_, overflow_, underflow_, invalid_}; }

 private:
  std::atomic<std::int64_t> elements_{0}, overflow_{0}, underflow_{0}, invalid_{0};
};

/// Results of a unit whose register saturates, wraps or stops at its largest number.
struct SaturationCounts {
  /// Of a register that saturates or stops: all results, and those at an end of it.
  std::int64_t results = 0, at_end = 0;
  /// Results that the reference computed again, and those whose register saturated or stopped at
  /// any addition, or whose sum wrapped.
  std::int64_t sampled = 0, overflowed = 0;

  bool any() const { return at_end + overflowed > 0; }
  double ends() const { return part(at_end, results); }  ///< share of results at an end
  /// The larger share: sums may leave an end again, and a sample misses what is rare.
  double share() const { return std::max(ends(), part(overflowed, sampled)); }
  SaturationCounts& operator+=(const SaturationCounts& other) {
    results += other.results;
    at_end += other.at_end;
    sampled += other.sampled;
    overflowed += other.overflowed;
    return *this;
  }

 private:
  static double part(std::int64_t some, std::int64_t all) {
    return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0;
  }
};

}  // namespace numemu::policies
