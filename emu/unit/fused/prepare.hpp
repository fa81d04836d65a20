// Shared by the fast paths of fused units: the supported rule, the operands, and the outputs left
// to the reference.
#pragma once
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that the double form understands (fast_paths.hpp).
inline constexpr std::string_view kFusedDoubleFields[] = {"core",
                                                          "k",
                                                          "group",
                                                          "order",
                                                          "accumulator.format",
                                                          "accumulator.rounding",
                                                          "accumulator.overflow_to_infinity",
                                                          "c",
                                                          "d",
                                                          "c_entry",
                                                          "alignment.fraction_bits",
                                                          "alignment.zero_exponent",
                                                          "alignment.zero_c_counts",
                                                          "alignment.floor",
                                                          "nan_code",
                                                          "scaling.point",
                                                          "scaling.format",
                                                          "scaling.block",
                                                          "input.format",
                                                          "input.rounding",
                                                          "alignment.rounding"};
/// The half, float and integer form cut toward zero.
inline constexpr std::span<const std::string_view> kFusedFields(kFusedDoubleFields,
                                                                std::size(kFusedDoubleFields) - 1);

/// A description reduced to the parameters of a fast path. Everything else has the value that every
/// NVIDIA unit has: subnormals kept, NaN canonical, operands dense. C and
/// D are float32, whatever IEEE-like register with exponents within float32's they hold; or both
/// they and the register are float16.
struct FusedRule {
  int fraction_bits = 0;                       ///< F
  RoundingMode alignment = RoundingMode::rtz;  ///< of addends: rtz, rne, rodd, rdn
  int group = 0;                               ///< products of one step
  int instruction = 0;        ///< products of one instruction, a multiple of `group`
  bool pairs_mod4 = false;    ///< the order of steps: first those with k mod 4 < 2, then the others
  bool c_at_end = false;      ///< C enters after_rounding: every instruction starts from +0
  bool half = false;          ///< the register, C and D are float16 (RNE)
  bool nearest = false;       ///< the register is rounded to nearest even, else toward zero
  int kept_bits = 23;         ///< its fraction bits: 1 to 23, float16 10
  int smallest = -126;        ///< the exponent of its smallest normal number
  int top = 128;              ///< 2^top is beyond its largest number
  bool zeros_drop = false;    ///< a zero element has no exponent; else it has `zero_exponent`
  int zero_exponent = -126;   ///< at most -126
  bool zero_c_drops = false;  ///< a zero C has no exponent
  std::optional<int> floor;   ///< of the largest exponent, at most that of the smallest normal C
  bool to_infinity = true;    ///< sums of 2^top and more become infinity, else the largest number
  bool scaled = false;        ///< e8m0 scales, one per step (block = group), for A and for B

  /// Float16, or some of float32's bits, rounded toward zero: all that forms but the float64 one
  /// write.
  bool usual_register() const { return half || (!nearest && smallest == -126); }
  bool float32_register() const { return smallest == -126 && kept_bits == 23; }
  /// Steps for K products: K is padded to whole instructions.
  std::int64_t steps(std::int64_t k) const {
    return (k + instruction - 1) / instruction * (instruction / group);
  }
};

/// Empty where the fast paths do not cover the description.
std::optional<FusedRule> fused_rule(const UnitDescription&);

/// One operand. Exponents follow from the values: of x != 0 it is max(floor(log2|x|), emin).
struct FusedSide {
  Source<float> values;   ///< finite: NaN and infinity are replaced by +0, padding is +0
  int emin = 0;           ///< exponent of the smallest normal number of the format
  int mantissa_bits = 0;  ///< of the format
  Exponents present;      ///< every non-zero value is a multiple of 2^low and below 2^top
  int lowest = 0;         ///< smallest and
  int highest = 0;        ///< largest exponent of a non-zero value; both 0 where there is none
  std::vector<std::uint8_t> special_rows;  ///< per row: holds NaN or infinity; empty: none does
  /// Scaled units: exponents of the scales, rows x blocks; a row with a NaN scale is special (its
  /// entry is 0).
  std::vector<std::int16_t> scales;
  std::int64_t blocks = 0;

  bool empty() const { return present.empty(); }  ///< every value is zero
};

/// The operands of a product.
struct FusedOperands {
  FusedOperands(const FusedRule& of, std::shared_ptr<const FusedSide> of_a,
                std::shared_ptr<const FusedSide> of_b)
      : rule(of), kept_a(std::move(of_a)), kept_b(std::move(of_b)), a(*kept_a), b(*kept_b) {}
  FusedRule rule;
  std::shared_ptr<const FusedSide> kept_a, kept_b;  ///< by prepared operands, too
  const FusedSide &a, &b;
  Exponents c;             ///< of the finite non-zero values of C
  bool special_c = false;  ///< C holds NaN or infinity: such an element must be read as +0
  /// No sum can overflow the register: |C| plus the magnitudes of all products stays below. Sums
  /// only shrink by cuts toward zero; float16 registers are given room for their roundings.
  bool bounded = false;
  /// Leaving zero products and a zero C out of the largest exponent changes no result: where a step
  /// has a non-zero product, that one has a larger exponent; where it has none, every C that can
  /// occur is a multiple of the last kept bit.
  bool zeros_never_count = false;

  /// Largest exponent of a product that can occur, scales included.
  int highest_product = 0;
  /// Every product, scales included, is a multiple of 2^lowest_bit.
  int lowest_bit = 0;
  /// Some outputs must be computed again by finish_fused().
  bool any_special() const {
    return special_c || !a.special_rows.empty() || !b.special_rows.empty();
  }
};

/// Decodes both operands unless they are prepared. Empty where the description, a format or K = 0
/// is not covered. Throws Error as Unit::multiply does.
std::optional<FusedOperands> prepare_fused(const UnitDescription&, const Gemm&);

/// Computes the outputs that meet NaN or infinity (rows of special_rows, C not finite) again. The
/// others, and those whose special turns out not to matter, must be in `d` already; a finite path
/// that overflowed must have left infinity there. Does nothing when there are none.
void finish_fused(const UnitDescription&, const Gemm&, const FusedOperands&);

// A rectangle of outputs of a fused unit, and the numbers that its steps need.

/// What the steps of a product have in common.
///
/// Stored exponents: of an element of the lanes e + `base`, of the rows e + 127 - base, of a zero
/// element as if e were -base; so their sums are biased as float32 exponents are. Where zero
/// elements have an exponent, that is -base. Where they drop out, base is so large that a product
/// with one stays below all others: -base + 127 < -149 - 149.
struct FusedSteps {
  FusedRule rule;
  int base = 0;
  /// The largest exponent may be raised to this without changing a bit: it is the unit's floor, or
  /// every addend is a multiple of 2^(least - F), so that nothing is cut there or below.
  int least = 0;
  /// Every addend is a multiple of 2^lowest.
  int lowest = 0;
  int exponent_of_zero_c = 0;
  bool bounded = false;           ///< no sum reaches the register's end
  bool plain_worthwhile = false;  ///< many steps have no larger exponent than lowest + F
  std::uint64_t nan_code = 0;
};

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end): the lanes fill vectors,
/// the rows are broadcast. Output (i, j) is d[i * row_stride + j * lane_stride]; one of the strides
/// is 1.
struct FusedTile {
  const FusedSteps* steps = nullptr;
  const FusedSide *rows = nullptr, *lanes = nullptr;
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0, k = 0;
  std::int64_t row_stride = 0, lane_stride = 1;
  const void* c = nullptr;
  void* d = nullptr;
};

FusedSteps fused_steps(const UnitDescription&, const FusedOperands&);

/// Cuts the product into tiles, the side that fills vectors better as lanes. Rounding is toward
/// zero inside `run`.
void run_fused_tiles(const Gemm&, const FusedOperands&, const FusedSteps&,
                     const std::function<void(const FusedTile&)>& run);

}  // namespace numemu::unit
