// Shared by all cores: the order of the products, random bits, products and rounded sums. Integer
// registers: exact products, signs compared, or products looked up; wrapping or saturating.
#include "emu/unit/reference/step.hpp"

#include <algorithm>
#include <utility>

#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/random.hpp"

namespace numemu::unit {
namespace {

__extension__ typedef unsigned __int128 Wide;

/// The rank of a product in the order of the steps; ties keep ascending k.
std::int64_t rank(StepOrder order, std::int64_t position) {
  switch (order) {
    case StepOrder::pairs_mod4:
      return position % 4 / 2;
    case StepOrder::odd_first:
      return position / 2 * 2 + (position % 2 == 0);
    case StepOrder::ascending:
      break;
  }
  return 0;
}

}  // namespace

std::uint32_t Draw::at(std::int64_t k, int bits) const {
  if (!words.empty()) return words[static_cast<std::size_t>(k)];
  const int piece = bits <= 8 ? 8 : bits <= 16 ? 16 : 32, pieces = 128 / piece;
  const PhiloxBlock block =
      philox(seed, {static_cast<std::uint32_t>(element / pieces), static_cast<std::uint32_t>(k),
                    tensor, static_cast<std::uint32_t>(Stream::accumulate)});
  const int place = static_cast<int>(element % pieces) * piece;
  const std::uint32_t word = block[static_cast<std::size_t>(place / 32)] >> place % 32;
  const std::uint32_t whole = piece == 32 ? word : word & ((1u << piece) - 1);
  return whole >> (piece - bits);
}

void put_in_step_order(const UnitDescription& unit, std::vector<Factors>& products) {
  if (unit.order == StepOrder::ascending) return;
  std::vector<std::int64_t> order(products.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) {
    return rank(unit.order, x) < rank(unit.order, y);
  });
  std::vector<Factors> ordered;
  ordered.reserve(products.size());
  for (const std::int64_t i : order) ordered.push_back(products[static_cast<std::size_t>(i)]);
  products = std::move(ordered);
}

std::int64_t step_size(const UnitDescription& unit, std::int64_t products) {
  return std::max<std::int64_t>(unit.group == 0 ? products : unit.group, 1);
}

std::string products_name(std::span<const Factors> products) {
  std::int64_t first = 0, last = 0, real = 0;
  for (const Factors& f : products) {
    if (f.padding) continue;
    first = real == 0 ? f.k : std::min(first, f.k);
    last = real == 0 ? f.k : std::max(last, f.k);
    ++real;
  }
  const std::int64_t padding = static_cast<std::int64_t>(products.size()) - real;
  if (real == 0) return padding == 0 ? "no product" : "padding";
  std::string name = last - first + 1 == real ? "" : std::to_string(real) + " of ";
  name += "k " + std::to_string(first);
  if (last != first) name += ".." + std::to_string(last);
  return padding == 0 ? name : name + " and " + std::to_string(padding) + " of padding";
}

TraceStep& add_step(const Machine& m, std::string what) {
  TraceStep& step = m.trace->steps.emplace_back();
  step.what = std::move(what);
  step.instruction = m.trace->instruction;
  return step;
}

std::string step_name(Trace& trace, std::span<const Factors> step) {
  return "step " + std::to_string(trace.numbered++) + ", " + products_name(step);
}

TraceTerm product_term(const Machine& m, const Factors& f, const Value& exact, const Value& kept) {
  TraceTerm term{
      f.padding ? "padding" : "product", f.padding ? -1 : f.k, f.code_a, f.code_b, exact, kept};
  if (m.unit.scaling.point == Scaling::Point::exponents) {
    term.scale_a = f.scale_a;
    term.scale_b = f.scale_b;
  }
  return term;
}

TraceTerm sum_term(std::string what, const Value& exact, const Value& kept) {
  return {std::move(what), -1, 0, 0, exact, kept};
}

Value held_in_register(const Machine& m, const Value& v) {
  if (v.kind != Class::nan) return v;
  const auto code = register_code(m.unit, m.unit.accumulator, v);
  return code && m.unit.accumulator.format != nullptr ? decode(*m.unit.accumulator.format, *code)
                                                      : v;
}

TraceTerm start_term(const Machine& m, std::string what, const Value& v) {
  const Value held = what == "C" ? v : held_in_register(m, v);
  return sum_term(std::move(what), held, held);
}

const char* start_name(const Machine& m, bool first_step) {
  if (!first_step) return "register";
  return m.unit.c_entry == CEntry::after_rounding ? "start" : m.c_name;
}

void end_step(const Machine& m, const Value& held) {
  m.trace->steps.back().result = register_code(m.unit, m.unit.accumulator, held);
}

Value exact_sum(const Machine& m, const Rounding& rounding) {
  return m.sum.sum(rounding.mode == RoundingMode::rdn && !m.unit.plus_zero_sums);
}

void check_invalid(const Machine& m, const Value& result, bool nan_operand) {
  if (result.kind == Class::nan && !nan_operand) m.flags |= kInvalid;
}

Value round_exact(const Machine& m, const Register& r, const Value& exact, bool nan_operand,
                  std::uint32_t random) {
  check_invalid(m, exact, nan_operand);
  return within(r, m.ends, round_to(r, m.unit.subnormals, exact, random, &m.flags));
}

bool any_nan(std::span<const Factors> products) {
  return std::any_of(products.begin(), products.end(), [](const Factors& f) {
    return f.a.kind == Class::nan || f.b.kind == Class::nan || f.scale_a.kind == Class::nan ||
           f.scale_b.kind == Class::nan;
  });
}

Value round_sum(const Machine& m, std::initializer_list<const Value*> nan_priority,
                std::uint32_t random) {
  // A two's complement register has no NaN: it then holds 0 and continues.
  for (const Value* v : nan_priority) {
    if (v->kind == Class::nan && m.unit.accumulator.format != nullptr) return *v;
  }
  return round_exact(m, m.unit.accumulator, exact_sum(m, m.unit.accumulator.rounding), false,
                     random);
}

Value add_rounded(const Machine& m, const Value& a, const Value& b, std::uint32_t random) {
  m.sum.clear();
  m.sum.add(a);
  m.sum.add(b);
  return round_sum(m, {&a, &b}, random);
}

Value add_c(const Machine& m, const Value& c, const Value& sum) {
  m.sum.clear();
  m.sum.add(c);
  m.sum.add(sum);
  Register r = m.unit.accumulator;
  r.rounding = m.unit.c_rounding;
  const Value exact = exact_sum(m, r.rounding);
  const bool nan_operand = sum.kind == Class::nan || c.kind == Class::nan;
  Value result = round_exact(m, r, exact, nan_operand);
  for (const Value* v : {&sum, &c}) {
    if (v->kind == Class::nan && r.format != nullptr) result = *v;
  }
  if (m.trace != nullptr) {
    const std::string name = m.c_name;
    TraceStep& step = add_step(m, "addition of " + (name == "register" ? "the register" : name));
    step.terms.push_back(start_term(m, name, c));
    step.terms.push_back(start_term(m, "sum of the steps", sum));
    step.sum = exact;
    end_step(m, result);
  }
  return result;
}

Value add_outer(const Machine& m, const char* name, const Value& outer, const Value& sum) {
  const Register& r = m.unit.outer.accumulator;
  m.sum.clear();
  m.sum.add(outer);
  m.sum.add(sum);
  const Value exact = exact_sum(m, r.rounding);
  Value result = round_exact(m, r, exact, outer.kind == Class::nan || sum.kind == Class::nan);
  for (const Value* v : {&sum, &outer}) {
    if (v->kind == Class::nan && r.format != nullptr) result = *v;
  }
  if (m.trace != nullptr) {
    TraceStep& step = add_step(m, "addition to the outer register");
    step.terms.push_back(sum_term(name, outer, outer));
    step.terms.push_back(start_term(m, "register", sum));
    step.sum = exact;
    step.outer = true;
    step.result = register_code(m.unit, r, result);
  }
  return result;
}

Value exact_product(const Value& a, const Value& b) {
  const bool negative = a.negative != b.negative;
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  if (a.kind == Class::nan || b.kind == Class::nan || (infinite && zero))
    return {.kind = Class::nan};
  if (infinite) return {.kind = Class::infinite, .negative = negative};
  if (zero) return {.kind = Class::zero, .negative = negative};
  Wide significand = Wide{a.significand} * b.significand;
  Value product{Class::finite, negative, false, a.exponent + b.exponent, 0};
  while ((significand >> 64) != 0) {
    product.sticky |= (significand & 1) != 0;
    significand >>= 1;
    ++product.exponent;
  }
  product.significand = static_cast<std::uint64_t>(significand);
  return product;
}

namespace {

std::int64_t whole_number(const Value& v) {
  if (v.kind != Class::finite) return 0;
  const auto magnitude = static_cast<std::int64_t>(v.significand) << v.exponent;
  return v.negative ? -magnitude : magnitude;
}

std::int64_t product_of(const UnitDescription& unit, const Format& b, const Factors& f) {
  switch (unit.core) {
    case CoreKind::xnor:
      return f.code_a == f.code_b ? 1 : -1;
    case CoreKind::table:
      return (*unit.products)[f.code_a << b.bits | f.code_b];
    default:
      return whole_number(f.a) * whole_number(f.b);
  }
}

Value value_of_whole(std::int64_t n) {
  if (n == 0) return {};
  return {Class::finite, n < 0, false, 0,
          n < 0 ? ~static_cast<std::uint64_t>(n) + 1 : static_cast<std::uint64_t>(n)};
}

/// What the register holds of a sum of whole numbers.
std::int64_t held(const Machine& m, std::int64_t sum) {
  const Register& r = m.unit.accumulator;
  return whole_number(within(r, m.ends, round_to(r, value_of_whole(sum), 0, &m.flags)));
}

}  // namespace

Value integer_product(const UnitDescription& unit, const Format& b, const Factors& f) {
  return value_of_whole(product_of(unit, b, f));
}

Value run_integer(const Machine& m, std::span<const Factors> products, const Value& c) {
  const bool each = m.unit.accumulator.integer == IntegerOverflow::saturate_each;
  const auto size =
      static_cast<std::size_t>(step_size(m.unit, static_cast<std::int64_t>(products.size())));
  std::int64_t sum = whole_number(c);
  for (std::size_t first = 0; first < products.size(); first += size) {
    const auto step = products.subspan(first, std::min(size, products.size() - first));
    TraceStep* const trace = m.trace == nullptr ? nullptr : &add_step(m, step_name(*m.trace, step));
    if (trace != nullptr)
      trace->terms.push_back(start_term(m, start_name(m, first == 0), value_of_whole(sum)));
    for (const Factors& f : step) {
      const std::int64_t product = product_of(m.unit, *m.b, f);
      sum = each ? held(m, sum + product) : sum + product;
      if (trace == nullptr) continue;
      trace->terms.push_back(product_term(m, f, value_of_whole(product), value_of_whole(product)));
      if (each) trace->terms.back().after = value_of_whole(sum);
    }
    if (trace != nullptr && !each) trace->sum = value_of_whole(sum);
    sum = held(m, sum);
    if (trace != nullptr) end_step(m, value_of_whole(sum));
  }
  return value_of_whole(held(m, sum));
}

}  // namespace numemu::unit
