// The input of an instruction: products, C, and the source of random bits; one function per core.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/kulisch.hpp"
#include "emu/unit/reference/trace.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

struct ShortEnds;

/// One product: its factors, and the scales of their blocks.
struct Factors {
  std::int64_t k = 0;  ///< of the product; padding counts on beyond K, or beyond the kept ones
  Value a, b;
  std::uint64_t code_a = 0, code_b = 0;
  Value scale_a, scale_b;  ///< zero-initialised where the unit has no block scales
  bool padding = false;    ///< no product of the operands: +0 times +0
};

/// The random bits of one output's stochastic register.
struct Draw {
  std::uint64_t seed = 0;
  std::uint32_t tensor = 0;
  std::int64_t element = 0;                   ///< i N + j
  std::span<const std::uint32_t> words = {};  ///< where given, the random number of each k instead
  /// The random number of multiply-add `k`, `bits` wide (docs/random.md).
  std::uint32_t at(std::int64_t k, int bits) const;
};

/// Everything a core may look at besides its products. `sum` is scratch, wide enough for any sum of
/// this product's terms.
struct Machine {
  const UnitDescription& unit;
  const Format *a, *b;  ///< of the operands at hand
  const Format* c;      ///< of the register, as its exponent counts; nullptr: two's complement
  std::int64_t depth;   ///< K: chunk sums draw with K + their index
  Draw draw;
  Kulisch& sum;
  std::uint8_t& flags;  ///< of the output: every operation adds its own
  Trace* trace;         ///< or null
  /// What the trace calls the sum an instruction starts from: C, or the register of the last one.
  const char* c_name = "C";
  const ShortEnds* ends = nullptr;  ///< of all registers
};

/// The register after one instruction on `products`, in the order of the unit's steps. C is in the
/// register before.
Value run_fused(const Machine&, std::span<const Factors> products, const Value& c);
Value run_exact(const Machine&, std::span<const Factors> products, const Value& c);
Value run_chain(const Machine&, std::span<const Factors> products, const Value& c);
Value run_tree(const Machine&, std::span<const Factors> products, const Value& c);
Value run_integer(const Machine&, std::span<const Factors> products, const Value& c);

/// The product of an integer, xnor or table unit; B has format `b`.
Value integer_product(const UnitDescription&, const Format& b, const Factors&);

/// Puts products in ascending k in the order of the unit's steps.
void put_in_step_order(const UnitDescription&, std::vector<Factors>& products);
/// Products per step.
std::int64_t step_size(const UnitDescription&, std::int64_t products);
/// "k 16..31", "2 of k 0..3", "k 0..2 and 29 of padding", "padding".
std::string products_name(std::span<const Factors>);

// The trace, where one is kept (m.trace is not null).

/// A new step; it stays valid until the next one.
TraceStep& add_step(const Machine& m, std::string what);
/// "step 2, k 16..31", the next number.
std::string step_name(Trace&, std::span<const Factors> step);
TraceTerm product_term(const Machine& m, const Factors&, const Value& exact, const Value& kept);
TraceTerm sum_term(std::string what, const Value& exact, const Value& kept);
/// What the register holds, as its code reads: a NaN has the sign of the code it is written as.
Value held_in_register(const Machine& m, const Value&);
/// The register, C or a start, where a sum begins.
TraceTerm start_term(const Machine& m, std::string what, const Value&);
/// What a step of an instruction starts from: C or the register.
const char* start_name(const Machine& m, bool first_step);
/// Notes the register that a step leaves.
void end_step(const Machine& m, const Value& held);

/// The sum in `m.sum` as the unit has it where it is rounded so: see `plus_zero_sums`.
Value exact_sum(const Machine& m, const Rounding&);
/// Raises NV for a NaN that comes from no NaN operand (zero times infinity beside one: dot.cpp).
void check_invalid(const Machine& m, const Value& result, bool nan_operand);
/// Checks, and rounds to the unit's register, or another.
Value round_exact(const Machine& m, const Register&, const Value& exact, bool nan_operand,
                  std::uint32_t random = 0);
inline Value round_exact(const Machine& m, const Value& exact, bool nan_operand) {
  return round_exact(m, m.unit.accumulator, exact, nan_operand);
}
/// Whether a factor of the products, or one of their scales, is NaN.
bool any_nan(std::span<const Factors> products);
/// The first of these that is NaN, or the sum that is in `m.sum` rounded to the register.
Value round_sum(const Machine& m, std::initializer_list<const Value*> nan_priority,
                std::uint32_t random = 0);
/// a + b rounded to the unit's register; a NaN comes from a before b.
Value add_rounded(const Machine&, const Value& a, const Value& b, std::uint32_t random = 0);
/// add_rounded() as the unit's separate addition of C, which may round in another way.
Value add_c(const Machine&, const Value& c, const Value& sum);
/// outer + sum rounded to the outer register, which the trace calls `name` before.
Value add_outer(const Machine&, const char* name, const Value& outer, const Value& sum);
/// a * b, sticky where its significand needs more than 64 bits (of float64 operands only).
Value exact_product(const Value& a, const Value& b);

}  // namespace numemu::unit
