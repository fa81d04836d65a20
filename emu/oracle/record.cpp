#include "emu/oracle/record.hpp"

#include <algorithm>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::oracle {

void append_record(const Layout& layout, const Records& from, std::int64_t i, Records& to) {
  if (to.columns.empty()) to.reset(layout, 0);
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const auto begin = from.columns[f].begin() + i * layout[f].count;
    to.columns[f].insert(to.columns[f].end(), begin, begin + layout[f].count);
    const bool some = from.unknown.size() > f && !from.unknown[f].empty();
    if (!some && to.unknown[f].empty()) continue;
    // Of all records, or of none.
    to.unknown[f].resize(static_cast<std::size_t>((to.size + 1) * layout[f].count));
    if (some)
      std::copy_n(from.unknown[f].begin() + i * layout[f].count, layout[f].count,
                  to.unknown[f].end() - layout[f].count);
  }
  to.class_of.push_back(to.class_number(from.class_name(i)));
  to.line.push_back(from.line[static_cast<std::size_t>(i)]);
  ++to.size;
}

Records slice(const Layout& layout, const Records& from, std::int64_t first, std::int64_t n) {
  Records some(layout, n);
  for (std::size_t f = 0; f < layout.size(); ++f)
    std::copy_n(from.columns[f].begin() + first * layout[f].count, n * layout[f].count,
                some.columns[f].begin());
  return some;
}

void append_record(const Layout& layout, const Sample& from, std::int64_t i, Sample& to) {
  const auto at = static_cast<std::size_t>(i);
  append_record(layout, from.records, i, to.records);
  append_record(layout, from.before, i, to.before);
  append_record(layout, from.earlier, i, to.earlier);
  to.want.push_back(from.want[at]);
  to.want_flags.push_back(from.want_flags[at]);
  to.number.push_back(from.number[at]);
}

Sample spread(const Layout& layout, const Sample& all, std::int64_t most) {
  if (all.size() <= most) return all;
  Sample some;
  for (std::int64_t n = 0; n < most; ++n) append_record(layout, all, n * all.size() / most, some);
  return some;
}

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
  if (s.codes) {
    constexpr int kBits = 32, kShiftBits = 8;
    static const Format& factor = find_format("float32");
    layout.push_back({"bias", kBits});
    if (s.codes->how == unit::Requantization::real) {
      layout.push_back(codes("factor", factor));
    } else {
      layout.push_back({"multiplier", kBits});
      layout.push_back({"shift", kShiftBits});
    }
    layout.push_back(codes("zero_point", *s.to));
    layout.push_back(codes("d", *s.to));
  } else {
    layout.push_back(accumulator("d", u, s.unit->d_format()));
  }
  layout.back().result = true;
  if (unit::result_register(u).format != nullptr) layout.push_back(flags());
  return layout;
}

}  // namespace

Layout layout_of(const Subject& s) {
  if (s.operation == Operation::unit) return unit_layout(s);
  Layout layout;
  if (is_unary(s.operation)) {
    layout = {codes("in", *s.a)};
  } else {
    layout = {codes("a", *s.a, s.k), codes("b", *s.b, s.k)};
    if (row_of(s.operation).has_c) layout.push_back(codes("c", *s.to));
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

Records::Records(const Layout& layout, std::int64_t n) { reset(layout, n); }

void Records::reset(const Layout& layout, std::int64_t n) {
  size = n;
  columns.resize(layout.size());
  unknown.assign(layout.size(), {});
  for (std::size_t f = 0; f < layout.size(); ++f)
    columns[f].assign(static_cast<std::size_t>(n * layout[f].count), 0);
  class_of.assign(static_cast<std::size_t>(n), 0);
  line.assign(static_cast<std::size_t>(n), 0);
}

void Records::resize(const Layout& layout, std::int64_t n) {
  size = n;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const auto elements = static_cast<std::size_t>(n * layout[f].count);
    columns[f].resize(elements);
    if (!unknown[f].empty()) unknown[f].resize(elements);
  }
  class_of.resize(static_cast<std::size_t>(n));
  line.resize(static_cast<std::size_t>(n));
}

bool Records::has_unknown(const Layout& layout, int field, std::int64_t i) const {
  const auto& bits = unknown[static_cast<std::size_t>(field)];
  if (bits.empty()) return false;
  const std::int64_t count = layout[static_cast<std::size_t>(field)].count;
  return std::any_of(bits.begin() + i * count, bits.begin() + (i + 1) * count,
                     [](std::uint64_t b) { return b != 0; });
}

std::uint8_t Records::class_number(std::string_view name) {
  constexpr std::size_t kMost = 255;
  const auto at = [&](std::string_view text) {
    return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), text) -
                                    classes.begin());
  };
  std::size_t number = at(name);
  if (number == classes.size() && number >= kMost) number = at(name = "other");
  if (number == classes.size()) classes.emplace_back(name);
  return static_cast<std::uint8_t>(number);
}

}  // namespace numemu::oracle
