// Builds one dot from exact numbers: products that A and B can form, their place, and C.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/oracle/dots.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

/// significand 2^exponent; a significand of 0 is a zero of that sign.
Value number(std::int64_t significand, int exponent = 0);
Value negated(Value);

/// The code of exactly this number in a format, or in two's complement of `bits` bits; nothing
/// where there is none.
std::optional<std::uint64_t> exact_code(const Format* format, int bits, const Value&);

/// Exponents of powers of two.
struct Reach {
  int least = 0, greatest = -1;
};
/// Of normal numbers of a floating format.
Reach normal_reach(const Format&);
/// Of products of two normal operands and, with block scales, of their scales.
Reach product_reach(const Ports&);

/// A dot whose other products are +0 times +0 and whose C is +0. What cannot be expressed makes the
/// whole draft empty.
class Draft {
 public:
  explicit Draft(const Ports&);

  /// The product at a position (of the kept ones) is exactly this finite number. Where there are
  /// block scales, the first product of a block decides its scales.
  Draft& product(int position, const Value&);
  Draft& factors(int position, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b);
  Draft& c(const Value&);
  Draft& c_code(std::optional<std::uint64_t>);
  Draft& scales(int block, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b);

  std::optional<Dot> dot() const;

 private:
  struct Codes {
    std::uint64_t a = 0, b = 0;
  };
  std::optional<Codes> split(const Value&) const;
  std::optional<Codes> split_integer(const Value&) const;
  bool set_scale(int block, int exponent);
  Draft& only_if(bool expressible);

  const Ports* ports_;
  Dot dot_;
  std::vector<std::optional<int>> scale_exponents_;
  bool expressible_ = true;
};

}  // namespace numemu::oracle
