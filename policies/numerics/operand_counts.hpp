// Counts of what is converted to codes.
#pragma once
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

}  // namespace numemu::policies
