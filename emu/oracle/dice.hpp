// The random words of a record.
#pragma once
#include <cstdint>

#include "formats/random.hpp"

namespace numemu::oracle {

/// Word w of record n is element w of a sequence of stream `vectors` (32 random bits each) with
/// tensor = n mod 2^32 and draw = n / 2^32, which is below 2^16.
class Dice {
 public:
  Dice(std::uint64_t seed, std::int64_t record) : seed_(seed), record_(record) {}

  std::uint32_t word() {
    if (next_ % 4 == 0) {
      const auto n = static_cast<std::uint64_t>(record_);
      block_ = philox(seed_,
                      {next_ / 4, static_cast<std::uint32_t>(n >> 32) << 16,
                       static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(Stream::vectors)});
    }
    return block_[next_++ % 4];
  }
  /// n random bits, 0 to 64.
  std::uint64_t bits(int n) {
    if (n <= 0) return 0;
    if (n <= 32) return word() >> (32 - n);
    const std::uint64_t high = word();
    return (high << 32 | word()) >> (64 - n);
  }
  /// A whole number in [0, n), n at most 2^32.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(word() * static_cast<std::uint64_t>(n) >> 32);
  }
  /// One in [low, high]; low where there is none.
  int between(int low, int high) {
    return high <= low ? low : low + static_cast<int>(below(std::int64_t{high} - low + 1));
  }
  bool flip() { return (word() >> 31) != 0; }

 private:
  std::uint64_t seed_;
  std::int64_t record_;
  std::uint32_t next_ = 0;
  PhiloxBlock block_ = {};
};

}  // namespace numemu::oracle
