// One output: decodes, applies the operand rules, pads, and computes instruction by instruction.
#include "emu/unit/reference/dot.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/step.hpp"
#include "formats/codec.hpp"
#include "formats/value.hpp"

namespace numemu::unit {
namespace {

/// An operand as the unit reads it: pre-rounded and flushed as its description says.
Source<Value> read_operand(const UnitDescription& unit, const Operand& operand, std::int64_t rows,
                           std::int64_t depth) {
  return decode_source<Value>(operand, rows, depth, [&](const Value& stored) {
    Value v = stored;
    if (unit.input.format != nullptr && v.kind == Class::finite) {
      v = decode(*unit.input.format,
                 encode(*unit.input.format, v, unit.input.rounding, Overflow::ieee).code);
    }
    const Format& format = unit.input.format != nullptr ? *unit.input.format : *operand.format;
    if (unit.subnormals.flush_inputs && format.kind == Kind::floating)
      v = flushed(format, v, unit.subnormals.inputs_to_plus_zero);
    return v;
  });
}

/// The exponents an exact accumulator of this product may need.
Exponents range_of(const UnitDescription& unit, const Format& a, const Format& b, const Format* c) {
  Exponents range = product_range(exponents_of(a), exponents_of(b));
  if (c != nullptr) range = join(range, exponents_of(*c));
  for (const Register* r : {&unit.accumulator, &result_register(unit)}) {
    range = join(
        range, r->format != nullptr ? exponents_of(*r->format) : Exponents{-r->fraction, r->bits});
  }
  range.low -= unit.scaling.shift;
  if (unit.scaling.format != nullptr) {
    const Exponents scales = exponents_of(*unit.scaling.format);
    range = join(range, product_range(range, product_range(scales, scales)));
  }
  return range;
}

bool zero_times_infinity(const Value& a, const Value& b) {
  return (a.kind == Class::zero && b.kind == Class::infinite) ||
         (a.kind == Class::infinite && b.kind == Class::zero);
}

}  // namespace

struct ReferenceDot::Problem {
  const UnitDescription& unit;
  const Gemm& gemm;
  std::int64_t products;    ///< per output: K, or the kept ones
  std::int64_t blocks = 0;  ///< scales per row
  const Format* c_format;   ///< of the input C; nullptr: two's complement
  Source<Value> a, b;
  Exponents range;

  /// Fills the factors of product p of an output, codes only where the trace or a core reads them;
  /// `f` is fresh.
  void read(std::int64_t i, std::int64_t j, std::int64_t p, bool traced, Factors& f) const;
  Value scale(const std::uint8_t* scales, std::int64_t row, std::int64_t block) const;
  /// Adds the product as it counts in an exact sum.
  void add_exact(const Factors&, Kulisch& sum) const;
};

Value ReferenceDot::Problem::scale(const std::uint8_t* scales, std::int64_t row,
                                   std::int64_t block) const {
  const Format& format = *unit.scaling.format;
  // Scales beyond K belong to padding and are the smallest code.
  std::uint64_t code = block < blocks ? scales[row * blocks + block] : 0;
  if (format.is_signed) code &= ~format.sign_bit();
  return decode(format, code);
}

void ReferenceDot::Problem::read(std::int64_t i, std::int64_t j, std::int64_t p, bool traced,
                                 Factors& f) const {
  f.k = p;
  const bool scaled = unit.scaling.point == Scaling::Point::exponents ||
                      unit.scaling.point == Scaling::Point::groups;
  if (scaled) {
    f.scale_a = scale(gemm.scale_a, i, p / unit.scaling.block);
    f.scale_b = scale(gemm.scale_b, j, p / unit.scaling.block);
  }
  f.padding = p >= products;
  if (f.padding) return;
  if (!unit.sparsity.dense()) {
    const Sparsity& s = unit.sparsity;
    f.k = p / s.kept * s.group + gemm.kept[i * products + p];
  }
  const std::int64_t at_a = a.row[i] + a.depth[p], at_b = b.row[j] + b.depth[f.k];
  f.a = a.values[at_a];
  f.b = b.values[at_b];
  if (!traced && unit.core != CoreKind::xnor && unit.core != CoreKind::table) return;
  // A padded source has no code for its border.
  if (gemm.a.gather->padding.identity()) f.code_a = code_at(gemm.a, at_a);
  if (gemm.b.gather->padding.identity()) f.code_b = code_at(gemm.b, at_b);
}

void ReferenceDot::Problem::add_exact(const Factors& f, Kulisch& sum) const {
  if (unit.core == CoreKind::xnor || unit.core == CoreKind::table)
    return sum.add(integer_product(unit, *gemm.b.format, f));
  Value x = f.a, y = f.b;
  if (unit.scaling.point == Scaling::Point::after_sum) x.exponent -= unit.scaling.shift;
  if (unit.scaling.block != 0) {
    x = exact_product(x, f.scale_a);
    y = exact_product(y, f.scale_b);
  }
  sum.add_product(x, y);
}

ReferenceDot::ReferenceDot(const UnitDescription& unit, const Gemm& gemm) {
  const bool dense = unit.sparsity.dense();
  const std::int64_t products = dense ? gemm.k : gemm.k / unit.sparsity.group * unit.sparsity.kept;
  const Format* c_format = numemu::unit::c_format(unit);
  Problem p{unit,
            gemm,
            products,
            0,
            c_format,
            read_operand(unit, gemm.a, gemm.m, products),
            read_operand(unit, gemm.b, gemm.n, gemm.k),
            range_of(unit, *gemm.a.format, *gemm.b.format, c_format)};
  if (unit.scaling.block != 0) p.blocks = (products + unit.scaling.block - 1) / unit.scaling.block;
  problem_ = std::make_unique<const Problem>(std::move(p));
}

ReferenceDot::~ReferenceDot() = default;
ReferenceDot::ReferenceDot(ReferenceDot&&) noexcept = default;

std::uint64_t ReferenceDot::code(std::int64_t i, std::int64_t j, Trace* trace,
                                 std::span<const std::uint32_t> words) const {
  const std::int64_t element = i * problem_->gemm.n + j;
  return outcome(i, j, element, element, trace, words).code;
}

Outcome ReferenceDot::outcome(std::int64_t i, std::int64_t j, std::int64_t c_element,
                              std::int64_t number, Trace* trace,
                              std::span<const std::uint32_t> words, const ShortEnds* ends) const {
  const Problem& p = *problem_;
  const UnitDescription& unit = p.unit;
  const Gemm& g = p.gemm;
  // 0 for units without an instruction: the whole depth is one, and nothing is padded but a step.
  const std::int64_t instruction = unit.k != 0 ? unit.k : unit.group;
  // Signs and codes that are looked up have no +0 to pad with.
  const bool pads = instruction != 0 && unit.core != CoreKind::xnor && unit.core != CoreKind::table;
  const std::int64_t padded =
      pads ? (p.products + instruction - 1) / instruction * instruction : p.products;

  Kulisch sum(p.range, p.products + 2);
  const Register& r = result_register(unit);
  std::uint8_t flags = 0;
  const Format* const input = unit.input.format;
  Machine machine{unit,
                  input != nullptr ? input : g.a.format,
                  input != nullptr ? input : g.b.format,
                  unit.accumulator.format,
                  g.k,
                  {g.seed, g.tensor, number, words},
                  sum,
                  flags,
                  trace,
                  g.c == nullptr ? "no C" : "C",
                  ends};
  Value c;
  if (g.c != nullptr) {
    c = read_element(p.c_format, r, g.c, c_element);
    if (is_signalling(c)) flags |= kInvalid;
    if (unit.subnormals.flush_c && p.c_format != nullptr && padded != 0)
      c = flushed(*p.c_format, c, unit.subnormals.inputs_to_plus_zero);
  }
  std::vector<Factors> products;
  const auto run = [&](std::int64_t begin, std::int64_t end, const Value& start) {
    products.clear();
    products.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t k = begin; k < end; ++k) {
      Factors& f = products.emplace_back();
      p.read(i, j, k, trace != nullptr, f);
      if (is_signalling(f.a) || is_signalling(f.b)) flags |= kInvalid;
      // Beside a NaN, too, as Arm and RISC-V do; x86 does not (IEEE 754-2019, 7.2, leaves it open).
      if (unit.nan != NanRule::x86 && zero_times_infinity(f.a, f.b)) flags |= kInvalid;
    }
    put_in_step_order(unit, products);
    switch (unit.core) {
      case CoreKind::fused:
        return run_fused(machine, products, start);
      case CoreKind::chain:
        return run_chain(machine, products, start);
      case CoreKind::tree:
        return run_tree(machine, products, start);
      case CoreKind::exact:
        return run_exact(machine, products, start);
      case CoreKind::integer:
      case CoreKind::xnor:
      case CoreKind::table:
        break;
    }
    return run_integer(machine, products, start);
  };
  // One level: all instructions are one sum, from C. Two: each sum starts from +0.
  const bool two_levels = unit.outer.every != 0;
  const std::int64_t every = two_levels ? unit.outer.every : std::max<std::int64_t>(padded, 1);
  const std::int64_t size = unit.k != 0 ? unit.k : every;
  // With K = 0 no instruction runs: D is C.
  if (trace != nullptr) trace->instructions = (padded + size - 1) / size;
  for (std::int64_t begin = 0; begin < padded; begin += every) {
    const std::int64_t end = std::min(begin + every, padded);
    Value level = two_levels ? Value{} : c;
    const char* const outer_name = begin == 0 ? machine.c_name : "outer register";
    if (two_levels) machine.c_name = "start";
    for (std::int64_t first = begin; first < end; first += size) {
      if (trace != nullptr) trace->instruction = first / size;
      level = run(first, std::min(first + size, end), level);
      machine.c_name = "register";
    }
    c = two_levels ? add_outer(machine, outer_name, c, level) : level;
  }
  const Format* d = result_format(unit);
  std::uint64_t code = code_of(d, r, c, unit.nan_code);
  if (unit.nan == NanRule::x86 && c.kind == Class::nan) code = x86_nan(*d, c, unit.nan_code);
  if (trace != nullptr) trace->result = code;
  const auto raised = static_cast<std::uint8_t>(flags & ~kSaturated);
  return {code, r.format != nullptr ? raised : std::uint8_t{0},
          (flags & (kOverflow | kSaturated)) != 0};
}

Value ReferenceDot::exact(std::int64_t i, std::int64_t j, std::initializer_list<Value> more) const {
  const Problem& p = *problem_;
  Exponents range = p.range;
  for (const Value& v : more) range.include(v);
  Kulisch sum(range, p.products + 1 + static_cast<std::int64_t>(more.size()));
  for (std::int64_t product = 0; product < p.products; ++product) {
    Factors f;
    p.read(i, j, product, false, f);
    p.add_exact(f, sum);
  }
  if (p.gemm.c != nullptr)
    sum.add(read_element(p.c_format, result_register(p.unit), p.gemm.c, i * p.gemm.n + j));
  for (const Value& v : more) sum.add(v);
  return sum.sum();
}

std::vector<Value> ReferenceDot::exact_sums(std::int64_t i, std::int64_t j,
                                            std::span<const std::int64_t> order,
                                            bool with_c) const {
  const Problem& p = *problem_;
  std::map<std::int64_t, Factors> by_k;
  for (std::int64_t product = 0; product < p.products; ++product) {
    Factors f;
    p.read(i, j, product, false, f);
    by_k[f.k] = f;
  }
  Kulisch sum(p.range, p.products + 1);
  if (with_c && p.gemm.c != nullptr)
    sum.add(read_element(p.c_format, result_register(p.unit), p.gemm.c, i * p.gemm.n + j));
  std::vector<Value> sums{sum.sum()};
  for (const std::int64_t k : order) {
    p.add_exact(by_k.at(k), sum);
    sums.push_back(sum.sum());
  }
  return sums;
}

UnitDescription as_stored(UnitDescription unit) {
  unit.input = {};
  unit.subnormals = {};
  return unit;
}

void ReferenceDot::write(std::int64_t i, std::int64_t j) const {
  const Problem& p = *problem_;
  store_code(result_format(p.unit), result_register(p.unit), code(i, j), p.gemm.d,
             i * p.gemm.n + j);
}

}  // namespace numemu::unit
