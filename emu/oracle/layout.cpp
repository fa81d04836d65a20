#include "emu/oracle/layout.hpp"

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::oracle {
namespace {

constexpr int kFlagBits = 8;  // two digits, as TestFloat has them

Field codes(std::string name, const Format& format, std::int64_t count = 1) {
  return {std::move(name), format.bits, count, &format};
}

Field flags() { return {.name = "flags", .bits = kFlagBits, .result = true, .optional = true}; }

/// C or D of a unit.
Field accumulator(std::string name, const unit::UnitDescription& u, const Format* format) {
  return format != nullptr ? codes(std::move(name), *format)
                           : Field{std::move(name), unit::result_register(u).bits};
}

Layout unit_layout(const Subject& s) {
  const unit::UnitDescription& u = *s.unit->description();
  const bool sparse = !u.sparsity.dense();
  const std::int64_t products = sparse ? unit::kept_depth(u.sparsity, s.k) : s.k;
  Layout layout = {codes("a", *s.a, products), codes("b", *s.b, s.k)};
  if (u.scaling.block != 0) {
    const std::int64_t blocks = (products + u.scaling.block - 1) / u.scaling.block;
    layout.push_back(codes("sa", *u.scaling.format, blocks));
    layout.push_back(codes("sb", *u.scaling.format, blocks));
  }
  if (sparse) layout.push_back({"e", unit::index_bits({u.sparsity}), products});
  layout.push_back(accumulator("c", u, s.unit->c_format()));
  if (u.accumulator.rounding.stochastic())
    layout.push_back({"r", u.accumulator.rounding.random_bits, random_words(s)});
  layout.push_back(accumulator("d", u, s.unit->d_format()));
  layout.back().result = true;
  if (unit::result_register(u).format != nullptr) layout.push_back(flags());
  return layout;
}

}  // namespace

Layout layout_of(const Subject& s) {
  if (s.operation == Operation::unit) return unit_layout(s);
  Layout layout;
  if (s.operation == Operation::convert) {
    layout = {codes("in", *s.a)};
  } else {
    layout = {codes("a", *s.a, s.k), codes("b", *s.b, s.k)};
    if (s.operation == Operation::fma || s.operation == Operation::dot)
      layout.push_back(codes("c", *s.to));
  }
  if (s.rounding.stochastic()) layout.push_back({"random", s.rounding.random_bits});
  layout.push_back(codes("out", *s.to));
  layout.back().result = true;
  layout.push_back(flags());
  return layout;
}

int find_field(const Layout& layout, std::string_view name) {
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (layout[f].name == name) return static_cast<int>(f);
  }
  return -1;
}

std::int64_t random_words(const Subject& s) {
  if (!s.rounding.stochastic()) return 0;
  if (s.unit == nullptr) return 1;
  const unit::UnitDescription& u = *s.unit->description();
  // A register draws at every product, padding included, and at the sums of chunks after those.
  if (u.chain.chunk != 0) return s.k + (s.k + u.chain.chunk - 1) / u.chain.chunk;
  const std::int64_t products =
      u.sparsity.dense() ? s.k : std::max(s.k, unit::kept_depth(u.sparsity, s.k));
  const std::int64_t instruction = u.k != 0 ? u.k : u.group;
  return instruction == 0 ? products : (products + instruction - 1) / instruction * instruction;
}

}  // namespace numemu::oracle
