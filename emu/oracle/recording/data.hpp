// The inputs of the large runs: a pure function of seed, instruction number, tile, operand and
// element.
#pragma once
#include <cstdint>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) on host and
// GPU.

struct PhiloxBlock {
  std::uint32_t word[4];
};

NUMEMU_HD inline PhiloxBlock philox(std::uint64_t seed, PhiloxBlock x) {
  auto low = static_cast<std::uint32_t>(seed);
  auto high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = 0xD2511F53ULL * x.word[0];
    const std::uint64_t q = 0xCD9E8D57ULL * x.word[2];
    x = {{static_cast<std::uint32_t>(q >> 32) ^ x.word[1] ^ low, static_cast<std::uint32_t>(q),
          static_cast<std::uint32_t>(p >> 32) ^ x.word[3] ^ high, static_cast<std::uint32_t>(p)}};
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return x;
}

/// Stream of the project's random bits that vectors are drawn from (formats/streams.def).
constexpr std::uint32_t kVectorStream = 10;

/// Words of one operand of one instruction, from element `first` on. Element i has word i mod 4 of
/// the block at counter (lo32(i/4), hi16(i/4) | draw << 16, tensor, kVectorStream); the
/// key is the seed.
class Words {
 public:
  Words(std::uint64_t seed, std::uint32_t tensor, int draw, std::uint64_t first)
      : seed_(seed), tensor_(tensor), draw_(static_cast<std::uint32_t>(draw) << 16), next_(first) {
    if (next_ % 4 != 0) refill();
  }
  std::uint32_t next() {
    if (next_ % 4 == 0) refill();
    return block_.word[next_++ % 4];
  }

 private:
  void refill() {
    const std::uint64_t at = next_ / 4;
    const auto high = static_cast<std::uint32_t>(at >> 32) & 0xffff;
    block_ =
        philox(seed_, {{static_cast<std::uint32_t>(at), high | draw_, tensor_, kVectorStream}});
  }

  std::uint64_t seed_;
  std::uint32_t tensor_, draw_;
  std::uint64_t next_;
  PhiloxBlock block_{};
};

constexpr std::uint64_t low_bits(int bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// A type's code cut into its parts; the mantissa of tf32 includes the 13 bits that the unit drops.
struct Parts {
  explicit constexpr Parts(Element e)
      : bits(info(e).bits),
        bytes(info(e).bytes),
        has_sign(info(e).has_sign),
        exponent(info(e).exponent_bits),
        mantissa(e == Element::tf32 ? 23 : info(e).mantissa_bits),
        dropped(e == Element::tf32 ? 13 : 0),
        bias(info(e).bias),
        specials(info(e).specials),
        sign_bit(info(e).has_sign ? std::uint64_t{1} << (info(e).bits - 1) : 0),
        fields((std::uint64_t{1} << (exponent + mantissa)) - 1),
        top(static_cast<int>(fields >> mantissa) - (specials == Specials::ieee ? 1 : 0)),
        largest(specials == Specials::ieee ? (static_cast<std::uint64_t>(top + 1) << mantissa) - 1
                : specials == Specials::finite ? fields
                                               : fields - 1) {}
  int bits, bytes;
  bool has_sign;
  int exponent, mantissa, dropped, bias;
  Specials specials;
  std::uint64_t sign_bit, fields;
  int top;                ///< largest exponent field of a finite number...
  std::uint64_t largest;  ///< ...and its largest code

  /// The exponent of a field; subnormals share that of field 1.
  constexpr int exponent_of(int field) const { return (field == 0 ? 1 : field) - bias; }
  /// Nearby: in a code that is not finite, one bit is cleared.
  constexpr std::uint64_t finite(std::uint64_t code) const {
    const std::uint64_t repair =
        specials == Specials::ieee ? std::uint64_t{1} << mantissa : std::uint64_t{1};
    return (code & fields) > largest ? code & ~repair : code;
  }
};

/// The random bits of one code: a word, or (codes of 64 bits) a block.
struct Draw {
  std::uint64_t code;      ///< as many bits as the type has
  std::uint64_t mantissa;  ///< at least as many bits as the mantissa has, in the low bits
  std::uint32_t choice;    ///< picks the exponent: a fraction of 2^32
  bool sign;
};
constexpr int words_of(const Parts& p) { return p.bits == 64 ? 4 : 1; }
inline Draw draw_code(const Parts& p, Words& words) {
  const std::uint32_t first = words.next();
  if (p.bits < 64) {
    // 23 bits of mantissa, 8 choose the exponent, 1 the sign.
    return {first >> (32 - p.bits), first & 0x7fffff, (first >> 23) << 24, first >> 31 != 0};
  }
  const std::uint64_t wide = first | static_cast<std::uint64_t>(words.next()) << 32;
  const std::uint32_t choice = words.next();
  return {wide, wide, choice, words.next() >> 31 != 0};
}

/// Exponent fields from `low` to `high`; 0 is that of zero and subnormals.
struct Range {
  int low, high;
  std::uint64_t mantissa;  ///< its bits that are drawn; the others are zero
};
/// The fields of the exponents low...high as far as the type has them.
Range exponents(const Parts&, int low, int high);

/// A finite code with an exponent of the range.
inline std::uint64_t in_range(const Parts& p, const Range& range, const Draw& draw) {
  const auto width = static_cast<std::uint64_t>(range.high - range.low + 1);
  const std::uint64_t field = static_cast<std::uint64_t>(range.low) + (draw.choice * width >> 32);
  const std::uint64_t magnitude = field << p.mantissa | (draw.mantissa & range.mantissa);
  return p.finite(magnitude) | (draw.sign ? p.sign_bit : 0);
}

/// Integers: two's complement in the type's bits.
inline std::int64_t integer_value(const Parts& p, std::uint64_t code) {
  const std::uint64_t top = code << (64 - p.bits);
  return p.has_sign ? static_cast<std::int64_t>(top) >> (64 - p.bits)
                    : static_cast<std::int64_t>(top >> (64 - p.bits));
}
inline std::uint64_t integer_code(const Parts& p, std::int64_t value) {
  return static_cast<std::uint64_t>(value) & low_bits(p.bits);
}
/// An integer of `bits` bits (signed where the type is), at most as many as the type has.
inline std::uint64_t small_integer(const Parts& p, int bits, const Draw& draw) {
  return bits < p.bits ? integer_code(p, integer_value(p, draw.code) >> (p.bits - bits))
                       : draw.code;
}
/// An s32 at most 2^20 from one of the ends, small distances as likely as large ones.
std::uint64_t near_an_end(const Draw&);

/// The special that a word chooses in place of `code`: infinities, NaN that keep the code's
/// mantissa as payload, zeros of both signs, the largest and the least; integers: the ends, 0, -1,
/// 1; scales: NaN, the ends, zero, and in ue4m3 the sign bit. The word's low 16 bits are not looked
/// at.
std::uint64_t special_code(Element, std::uint64_t code, std::uint32_t word);

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
