// The inputs of the large runs: a pure function of seed, instruction number, tile, operand and
// element.
#pragma once
#include <cstdint>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/data_codes.hpp"

namespace numemu::oracle::recording {

/// Tile t is of kind t mod 10; every second tile of a kind (t / 10 odd) takes its second turn.
/// Exponents are those of A and B; C lies around their products. Types with few exponents take what
/// they have: FP4 and FP6 differ little from kind to kind, their zeros and subnormals occur in all.
enum class DataKind : std::uint8_t {
  narrow,       ///< exponents -1...1; second turn (also of the next two): mantissas of two bits
  mixed,        ///< -4...4
  broad,        ///< -8...8
  wide,         ///< -24...24, float64 -60...60
  cancelling,   ///< kept products 2p and 2p + 1 cancel: exactly, or in one of four almost
  accumulator,  ///< C above every product; integers: C within 2^20 of an end of int32
  tiny,         ///< by turns of three: A subnormal, B subnormal, products at the bottom of C (which
                ///< every other time is zero)
  widest,       ///< any finite code; second turn: B so small that C does not overflow
  zeros,        ///< half of A and B zeros of both signs, C = +-0; second turn: A near 2^-126
  specials,     ///< a few infinities, NaN, extremes among mixed; second turn: near overflow
};
constexpr int kDataKinds = 10;
const char* name(DataKind);
constexpr DataKind kind_of_tile(std::int64_t tile) {
  return static_cast<DataKind>(tile % kDataKinds);
}

/// The coordinate `draw` of an operand's codes; its decisions (which codes become special, which
/// pairs cancel almost) are drawn at kDecisions + operand.
enum class Operand : std::uint8_t { a, b, c, metadata, scale_a, scale_b };
constexpr int kDecisions = 8;

/// Fills the operands of all tiles; the batch's first tile is `first_tile` of the run. Batches of
/// disjoint tiles may be filled by threads side by side. tensor: tensor_of() the
/// instruction. Element e of an operand of tile t has index t * (elements of a tile) + e.
void fill(Batch&, std::uint32_t tensor, std::uint64_t seed, std::int64_t first_tile);

/// The k of the kept code j of a row of A, by the row's metadata.
int place_of_kept(const Instruction&, const std::uint8_t* metadata, int j);

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
