// A rule: how one dot of a matrix instruction is summed, in integers only; rivals differ in one
// field.
#pragma once
#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// One dot as a record holds it: codes in their containers.
struct Dot {
  const Instruction* instruction;
  const std::uint8_t* a;         ///< kept() codes
  const std::uint8_t* b;         ///< k codes
  const std::uint8_t* c;         ///< one code
  const std::uint8_t* metadata;  ///< groups() words of four bits, a byte each
  const std::uint8_t* scale_a;   ///< scales() codes
  const std::uint8_t* scale_b;
};

enum class Core : std::uint8_t {
  fused,        ///< align, cut, add exactly, round: specs of NVIDIA's units
  fma_chain,    ///< fused multiply-adds, k ascending from C, nearest even
  lowered_fp8,  ///< two half-precision steps over k mod 4, then an addition of C (Hopper, B200
                ///< mma.sync FP8)
  four_groups,  ///< FP4 with block scales: exact sums of G, then one fused step
  integer,      ///< exact, then wrapped or clamped
};
enum class ZeroProduct : std::uint8_t {
  least_exponent,  ///< a zero operand, and a zero C, has exponent -126
  dropped,         ///< neither zero products nor a zero C take part in the largest exponent
  products_only    ///< zero products as in least_exponent; a zero C takes no part
};
enum class CEnters : std::uint8_t { in_alignment, after_rounding };
enum class Align : std::uint8_t {
  toward_zero,
  down,
  nearest_even,
  of_sum  ///< the terms are added exactly, and the sum is cut toward zero
};
enum class Saturation : std::uint8_t { once, per_step, never };  ///< never: modulo 2^32
enum class ZeroSign : std::uint8_t {
  positive,
  of_sum,     ///< -0 where a negative sum is cut to zero
  of_zeros,   ///< -0 where every addend is -0, as IEEE 754 additions of zeros give
  of_addends  ///< as of_sum, and -0 where every addend is negative or -0 (as IEEE additions give)
};
enum class Overflow : std::uint8_t { infinity, largest_finite };  ///< of a sum rounded toward zero
enum class NanPayload : std::uint8_t {
  canonical,  ///< 0x7fffffff, 0x7fff
  a_b_c,      ///< of the first NaN operand, quieted: k ascending, A before B, C last
  c_a_b       ///< C first
};
enum class LowBits : std::uint8_t { dropped, nearest_even, nearest_away, used };  ///< of tf32
enum class Chain : std::uint8_t { ascending, descending, rounded_products, c_last };
/// Which products the first half of a lowered sequence sums.
enum class Split : std::uint8_t { low_of_four, first_half, even, none };

struct Rule {
  std::string name;      ///< a readable name: "G=16 F=25"
  std::string question;  ///< the open question it answers otherwise than the first rule; "": the
                         ///< specification's
  Core core = Core::fused;
  int step = 0;       ///< G: kept products in one fused step (four_groups: in a group); 0: all
  int fraction = 25;  ///< F: bits below the largest unnormalised exponent
  int kept = 23;      ///< fraction bits of the float32 result that are written (13: FP22)
  int exponent_floor = INT_MIN;  ///< lower clamp of the largest exponent; INT_MIN: none
  ZeroProduct zero = ZeroProduct::least_exponent;
  CEnters c = CEnters::in_alignment;
  Align align = Align::toward_zero;
  Saturation saturation = Saturation::once;
  ZeroSign zero_sign = ZeroSign::positive;
  Overflow overflow = Overflow::infinity;
  NanPayload nan = NanPayload::canonical;
  Split split = Split::low_of_four;  ///< lowered_fp8; low_of_four: k mod 4 < 2
  bool swapped = false;              ///< the last step (lowered_fp8: half) is summed first
  int interleaved = 0;    ///< steps take turns at so many neighbours; 0: each has its own stretch
  bool flush_ab = false;  ///< subnormal A and B count as zeros
  bool flush_c = false;
  bool flush_result = false;      ///< a subnormal result of a step is a zero of its sign
  bool skip_kept_zeros = false;   ///< sparse: a kept zero of A meets nothing, not even infinity
  bool counts_positions = false;  ///< sparse: steps count positions of the dense k
  bool expands = false;           ///< sparse: what is not kept is multiplied as a zero
  LowBits low_bits = LowBits::dropped;
  Chain chain = Chain::ascending;    ///< fma_chain
  bool normalised_products = false;  ///< the exponent of a product is that of its leading bit
  bool infinite_at_once = false;     ///< a product of 2^128 or more is infinite
  bool no_infinities = false;        ///< the codes of infinity and NaN are numbers
  bool nan_needs_nonzero = false;    ///< a NaN scale does nothing to a block of zeros
  bool clamps_scales = false;  ///< the exponents of two scales add up to -127 at least, 127 at most
  bool signed_scales = false;  ///< the sign bit of ue4m3 counts
  bool flush_scales = false;   ///< a subnormal ue4m3 is zero
  bool infinite_c_is_nan = false;  ///< block scales: an infinite C gives NaN
};

/// The code of D.
std::uint64_t answer(const Rule&, const Dot&);

/// The specification's rule for this instruction on a chip, then its rivals; empty: nothing is
/// known. chip: "V100", "T4", "A100", "Ada", "H100", "H200", "B200", "RTXBlackwell".
std::vector<Rule> rules(const std::string& chip, const Instruction&);

}  // namespace numemu::oracle::recording
