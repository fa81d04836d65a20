// A matrix unit as data: the parameters that one reference executes.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::unit {

/// How a step sums its products.
enum class CoreKind : std::uint8_t {
  fused,    ///< aligned to the largest exponent, cut, added exactly, rounded once
  chain,    ///< one multiply-add after another, each rounded
  tree,     ///< added pairwise, every sum rounded, then C
  exact,    ///< the exact sum of the products and C, rounded once
  integer,  ///< exact integer products into a register that wraps or saturates
  xnor,     ///< agreements of signs, counted
  table,    ///< integer products looked up in a table of a times b
};

/// Which products of an instruction the first step takes, which the next.
enum class StepOrder : std::uint8_t {
  ascending,   ///< `group` neighbours, k ascending
  pairs_mod4,  ///< first k mod 4 in {0, 1}, then {2, 3}, each ascending (FP8 lowered to FP16)
  odd_first,   ///< ascending pairs, k odd before k even (VDPBF16PS)
};

/// Where C joins the sum.
enum class CEntry : std::uint8_t {
  in_alignment,     ///< one more term of the first step (of a chain: its initial value)
  after_alignment,  ///< meets the unrounded sum of the products in a second alignment
  after_rounding,   ///< added once, after the last step, with one more rounding
};

/// What happens to NaN.
enum class NanRule : std::uint8_t {
  canonical,  ///< every NaN result is `nan_code`
  x86,        ///< the first NaN operand in the order a, b, accumulator, quieted with its payload;
              ///< an invalid operation gives `nan_code`
};

/// What a two's complement register does with a sum beyond its ends.
enum class IntegerOverflow : std::uint8_t {
  wrap,           ///< modulo 2^bits
  saturate_once,  ///< once per step, on the exact sum of its products and C
  saturate_each,  ///< after every addition
};

/// What a step (or, in a chain, a multiply-add) is rounded to and C is chained in.
struct Register {
  const Format* format = nullptr;  ///< floating; nullptr: two's complement
  Rounding rounding = {};
  Overflow overflow = Overflow::ieee;  ///< of floating registers
  /// Beyond the largest value infinity results for any rounding (NVIDIA under rtz).
  bool overflow_to_infinity = false;
  int bits = 32, fraction = 0;  ///< two's complement: width, bits right of the point
  IntegerOverflow integer = IntegerOverflow::wrap;
};

/// fused: which bits of an addend take part. Exponents are those of the unnormalised product: the
/// sum of the operands' exponents, a subnormal counting with its format's smallest one.
struct Alignment {
  int fraction_bits = 0;                      ///< F: kept below the largest exponent
  RoundingMode rounding = RoundingMode::rtz;  ///< of each addend: rtz, rne, rodd by magnitude; rdn
  std::optional<int> zero_exponent = -126;    ///< of a zero operand; none: zero products drop out
  bool zero_c_counts = true;        ///< a zero C (or register) counts with zero_exponent, too
  std::optional<int> floor = -126;  ///< lower bound of the largest exponent
  int parts = 1;  ///< 2: products of even and of odd k are aligned and summed apart, then cut (rdn)
                  ///< at F bits below the larger of their exponents and added
};

/// fused, C after_alignment: the cut where the sum of the products meets C, below the larger
/// exponent of the two; both rounded down (rdn).
struct SecondAlignment {
  int fraction_bits = 31;    ///< of the sum
  int c_fraction_bits = 24;  ///< of C
  std::optional<int> c_dropped =
      {};  ///< C counts as zero when its exponent is more than this below
};

/// chain: how multiply-adds follow each other.
struct Chaining {
  int chains = 1;  ///< interleaved by k, each from +0 when more than one; added pairwise at the end
  int chunk = 0;   ///< 0, or products per chunk: chunks from +0, their sums chained in the same
                   ///< register
  bool fused = true;   ///< false: the product is rounded to the register first
  bool kahan = false;  ///< compensated: y = p - e; t = s + y; e = (t - s) - y; s = t, each rounded
};

/// tree: what is rounded, and where.
struct Tree {
  int leaf = 1;                ///< products added exactly before the first rounding
  bool round_products = true;  ///< with leaf 1: each product is rounded before it is added
  /// With leaf 1: a product that is exactly zero is +0 (AMD forms it as fma(a, b, +0)).
  bool plus_zero_products = false;
};

/// What the unit does with subnormal numbers; a flush gives a zero of the same sign, but +0 with
/// `inputs_to_plus_zero`.
struct Subnormals {
  bool flush_inputs = false;         ///< A and B
  bool inputs_to_plus_zero = false;  ///< of flushed inputs and C, and of -0
  bool flush_c = false;
  bool flush_results = false;  ///< of every rounded sum; tiny as judged after rounding
  bool tiny_before_rounding = false;
};

/// Block scales along k.
struct Scaling {
  enum class Point : std::uint8_t {
    none,
    exponents,  ///< a power of two, added to the exponent of every product of the block
    groups,     ///< the exact sum of 16 products times both scales is one addend of the step
    after_sum,  ///< the sum of a step times 2^-`shift`, exact, before C joins (Arm's LSCALE)
  };
  Point point = Point::none;
  const Format* format = nullptr;  ///< float8_e8m0fnu or float8_e4m3fn (its sign bit is ignored)
  int block = 0;                   ///< elements per scale
  int shift = 0;
};

/// N kept of every M along k; 0 of 0: dense.
struct Sparsity {
  int kept = 0, group = 0;
  bool operator==(const Sparsity&) const = default;
  bool dense() const { return group == 0; }
};

/// Rounds operands on their way in (a unit that takes float32 but multiplies less).
struct InputRounding {
  const Format* format = nullptr;  ///< nullptr: operands enter as they are
  Rounding rounding = {};
};

/// Two levels of accumulation: every sum of `every` products starts from +0 in the unit's register
/// and is added to this one, which C starts and D is read from (DeepGEMM's promotion of FP8 sums to
/// float32 every 128; a dot product of 16, rounded, then added to an accumulator).
struct Outer {
  int every = 0;  ///< products, whole instructions; the last sum may be shorter; 0: one level
  Register accumulator;
};

/// A unit. The fields a core does not use must have their default values; check_description()
/// checks it.
struct UnitDescription {
  std::string name;
  const Format *a = nullptr, *b = nullptr;  ///< operands; nullptr: any format with a container
  const Format* c = nullptr;  ///< floating input C; nullptr: as the register that it starts
  Register accumulator;
  const Format* d = nullptr;  ///< floating result, the register widened; nullptr: as the register
  CoreKind core = CoreKind::exact;
  int k = 0;      ///< products of one instruction, to which K is padded with +0; 0: any
  int group = 0;  ///< products of one step; 0: all of the instruction's
  StepOrder order = StepOrder::ascending;
  CEntry c_entry = CEntry::in_alignment;
  Rounding c_rounding = {};  ///< after_rounding: of the addition of C
  /// A sum of exactly zero whose addends differ in sign is +0 also where it is rounded down. IEEE
  /// 754 (6.3), and the default: -0 there. Sums of fused steps are +0 in any case.
  bool plus_zero_sums = false;
  Alignment alignment;
  SecondAlignment second;
  Chaining chain;
  Tree tree;
  Subnormals subnormals;
  /// fused: a finite product of magnitude 2^128 or more counts as infinite (CDNA3).
  bool products_overflow = false;
  NanRule nan = NanRule::canonical;
  std::uint64_t nan_code = 0x7fc00000;  ///< in d's encoding
  Scaling scaling;
  Sparsity sparsity;
  InputRounding input;
  Outer outer;
  /// table: the product of codes a and b is products[a << b_bits | b].
  std::shared_ptr<const std::vector<std::int32_t>> products;
};

/// The register that C starts and D is read from.
inline const Register& result_register(const UnitDescription& u) {
  return u.outer.every != 0 ? u.outer.accumulator : u.accumulator;
}

/// Throws Error with the reason if the parameters contradict each other.
void check_description(const UnitDescription&);

}  // namespace numemu::unit
