// Trees: products rounded and added pairwise, every sum rounded, then C; and exact sums of a step.
#include <algorithm>
#include <bit>
#include <utility>

#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/step.hpp"

namespace numemu::unit {
namespace {

/// Steps of the unit's size; each starts from the register of the previous one.
template <class Step>
Value over_steps(const Machine& m, std::span<const Factors> products, Value sum, const Step& step) {
  const auto size =
      static_cast<std::size_t>(step_size(m.unit, static_cast<std::int64_t>(products.size())));
  for (std::size_t first = 0; first < products.size(); first += size) {
    const auto part = products.subspan(first, std::min(size, products.size() - first));
    if (m.trace != nullptr) add_step(m, step_name(*m.trace, part));
    sum = step(part, sum, start_name(m, first == 0));
    if (m.trace != nullptr) end_step(m, sum);
  }
  return sum;
}

void note(const Machine& m, const Factors& f, const Value& exact, const Value& kept) {
  if (m.trace == nullptr) return;
  m.trace->steps.back().terms.push_back(product_term(m, f, exact, kept));
}

void note_sum(const Machine& m, std::string what, const Value& exact, const Value& kept) {
  if (m.trace == nullptr) return;
  m.trace->steps.back().terms.push_back(sum_term(std::move(what), exact, kept));
}

/// The register before the step, then the exact sum with it, which is in `m.sum`.
void note_end(const Machine& m, const char* c_name, const Value& c) {
  if (m.trace == nullptr) return;
  m.trace->steps.back().terms.push_back(start_term(m, c_name, c));
  m.trace->steps.back().sum = exact_sum(m, m.unit.accumulator.rounding);
}

/// The lowest level: `leaf` products added exactly and rounded.
std::vector<Value> leaves(const Machine& m, std::span<const Factors> step) {
  const auto leaf = static_cast<std::size_t>(m.unit.tree.leaf);
  std::vector<Value> level;
  for (std::size_t first = 0; first < step.size(); first += leaf) {
    const auto own = step.subspan(first, std::min(leaf, step.size() - first));
    m.sum.clear();
    for (const Factors& f : own) m.sum.add_product(f.a, f.b);
    if (m.unit.tree.plus_zero_products) m.sum.add(Value{});
    const Value exact =
        m.unit.tree.plus_zero_products ? m.sum.sum() : exact_sum(m, m.unit.accumulator.rounding);
    const bool round = leaf > 1 || m.unit.tree.round_products;
    check_invalid(m, exact, any_nan(own));
    level.push_back(round ? round_exact(m, exact, true) : exact);
    if (leaf > 1) {
      for (const Factors& f : own) note(m, f, exact_product(f.a, f.b), exact_product(f.a, f.b));
      note_sum(m, "sum of " + products_name(own), exact, level.back());
    } else {
      note(m, own.front(), exact, level.back());
    }
  }
  return level;
}

Value tree_step(const Machine& m, std::span<const Factors> step, const Value& c,
                const char* c_name) {
  std::vector<Value> level = leaves(m, step);
  auto width = static_cast<std::size_t>(m.unit.tree.leaf);  // products of one value of the level
  for (; level.size() > 1; width *= 2) {
    std::vector<Value> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      above.push_back(add_rounded(m, level[i], level[i + 1]));
      const auto rest = step.subspan(i * width);
      note_sum(m, "sum of " + products_name(rest.first(std::min(2 * width, rest.size()))),
               exact_sum(m, m.unit.accumulator.rounding), above.back());
    }
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = std::move(above);
  }
  const Value result = add_rounded(m, c, level[0]);
  note_end(m, c_name, c);
  return result;
}

/// The factors with their scales in: those of their blocks, or Arm's 2^-shift of the whole sum.
Factors scaled(const Scaling& scaling, const Factors& f) {
  Factors s = f;
  if (scaling.point == Scaling::Point::after_sum) s.a.exponent -= scaling.shift;
  if (scaling.point == Scaling::Point::exponents) {
    s.a = exact_product(f.a, f.scale_a);
    s.b = exact_product(f.b, f.scale_b);
  }
  return s;
}

Value exact_step(const Machine& m, std::span<const Factors> step, const Value& c,
                 const char* c_name) {
  m.sum.clear();
  for (const Factors& f : step) {
    const Factors with_scales = scaled(m.unit.scaling, f);
    const Value& a = with_scales.a;
    const Value& b = with_scales.b;
    m.sum.add_product(a, b);
    note(m, f, exact_product(a, b), exact_product(a, b));
  }
  m.sum.add(c);
  note_end(m, c_name, c);
  return round_exact(m, exact_sum(m, m.unit.accumulator.rounding),
                     any_nan(step) || c.kind == Class::nan);
}

}  // namespace

Value run_tree(const Machine& m, std::span<const Factors> products, const Value& c) {
  return over_steps(m, products, c, [&m](auto step, const Value& sum, const char* name) {
    return tree_step(m, step, sum, name);
  });
}

Value run_exact(const Machine& m, std::span<const Factors> products, const Value& c) {
  return over_steps(m, products, c, [&m](auto step, const Value& sum, const char* name) {
    return exact_step(m, step, sum, name);
  });
}

}  // namespace numemu::unit
