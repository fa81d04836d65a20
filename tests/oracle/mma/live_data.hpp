// Ten kinds of operands that make an instruction show its rounding, its cuts and its NaN.
#pragma once
#include <cstdint>
#include <string>

#include "formats/format.hpp"
#include "formats/random.hpp"

namespace numemu::oracle::mma {

inline constexpr int kKinds = 10;

/// Words from the project's Philox.
class Words {
 public:
  explicit Words(std::uint64_t seed) { source_.seed = seed; }
  std::uint32_t next() { return source_.bits(next_++, 32); }
  std::uint32_t below(std::uint32_t n) { return next() % n; }

 private:
  RandomSource source_{.seed = 0, .stream = Stream::vectors};
  std::uint64_t next_ = 0;
};

/// A tile's operands as they lie in memory: A[m][k], B[k][n], C[m][n].
struct TileData {
  std::string a, b, c;
};

struct TileShape {
  std::int64_t m = 16, n = 16, k = 0;
};

/// Floating: 0-2 exponents spread over 2, 6 and 12 binades, 3 wide, 4 cancelling pairs, 5 C
/// dominates, 6 products and differences around the smallest normal number, 7 every finite code, 8
/// half zeros and C a zero, 9 infinities, NaN with payloads, numbers near overflow.
TileData float_tile(const Format& operand, const Format& c, TileShape, int kind, Words&);

/// Two's complement or unsigned codes into int32. 0-2 all, small, extreme; 3 and 4 cancelling, half
/// zeros; 5 and 6 C near the upper and the lower end; 7 the largest sums; 8 C a zero; 9 all.
TileData integer_tile(int operand_bits, TileShape, int kind, Words&);

}  // namespace numemu::oracle::mma
