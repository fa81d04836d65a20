// A thousand tiles of an instruction, decoded by the project's own codecs: what tests of the kinds
// of data look at.
#pragma once
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "emu/oracle/recording/data.hpp"
#include "formats/value.hpp"

namespace numemu::oracle::recording {

/// Tiles of 64 rows hold as many codes in a quarter of the thousand.
inline int tiles_of(const Instruction& i) { return i.m < 64 ? 1000 : 250; }

/// As the unit reads it: tf32 without its low bits, ue4m3 without a sign. Integers: exponent 0.
Value value_of_code(Element, std::uint64_t code);
/// Of an integer.
std::int64_t integer(const Value&);
/// Bits of a number.
inline int width(std::uint64_t x) { return 64 - std::countl_zero(x); }
/// Power of two at or below a finite number.
inline int exponent_of(const Value& v) { return width(v.significand) - 1 + v.exponent; }

struct Line {
  std::vector<std::uint64_t> codes;
  std::vector<Value> values;
};

/// One tile: rows of A, columns of B, C row by row.
struct Decoded {
  std::vector<Line> a, b, c, scale_a, scale_b;
  std::vector<std::vector<int>> place;  ///< of the kept codes, in each row of A
  std::int64_t turn;
};

/// Every tile of one kind among the thousand.
void each_tile(int number, DataKind, const std::function<void(const Decoded&)>& look);

/// Products of one dot in the order of the kept codes.
template <typename See>
void each_product(const Instruction& i, const Decoded& d, std::size_t row, std::size_t column,
                  See see) {
  for (std::size_t j = 0; j < static_cast<std::size_t>(i.kept()); ++j)
    see(j, d.a[row].values[j], d.b[column].values[static_cast<std::size_t>(d.place[row][j])]);
}

/// Of every (A, B, C, scale, block, sparsity) the instruction with the smallest tile, but of mixes
/// of types only those of integers: by its number.
std::vector<int> chosen();
/// Calls `test` for each of them, named in every message of Catch.
void for_each(const std::function<void(int number, const Instruction&)>& test);

}  // namespace numemu::oracle::recording
