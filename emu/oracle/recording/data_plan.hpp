// The distribution of each kind of data for each operand: exponents, bits of integers, rate of
// specials.
#pragma once
#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/data_codes.hpp"

namespace numemu::oracle::recording {

/// How the codes of one operand are drawn.
struct Plan {
  Range range{0, 0, 0};    ///< floating-point
  int bits = 0;            ///< integers; 0: zero
  bool any = false;        ///< any finite code, not the range
  bool at_ends = false;    ///< integers: near the ends of int32
  int one_special_of = 0;  ///< a power of two; 0: none
};
struct Plans {
  Plan a, b, c, scale_a, scale_b;
};

Plans plans(const Instruction&, DataKind, std::int64_t turn);

}  // namespace numemu::oracle::recording
