// The step function of a format, cell by cell or gap by gap, and what lies beyond its two ends.
#include "formats/analysis/outcome_law.hpp"

#include <algorithm>
#include <cmath>

#include "formats/analysis/cells.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

/// The outcome of a real far beyond the ends, by the codec: saturated, infinite or NaN.
PossibleResult beyond(const Format& format, const Rounding& rounding, Overflow overflow,
                      bool negative, double last) {
  const Value huge{Class::finite, negative, false, 1 << 20, 1};
  const Encoded encoded = encode(format, huge, rounding, overflow);
  const Value value = decode(format, encoded.code);
  const bool stays = value.kind == Class::finite || value.kind == Class::zero;
  return {stays && (encoded.flags & kOverflow) != 0 ? last : to_double(value),
          (encoded.flags & kOverflow) != 0, (encoded.flags & kInvalid) != 0};
}

bool has_tiny(const Format& format) { return format.kind == Kind::floating; }

/// Subnormals become zero after rounding.
bool flushes(const Format& format) {
  return format.kind == Kind::floating && format.field_zero == FieldZero::flush;
}

/// The format whose grid the rounding sees: flushing comes after it.
Format rounding_grid(const Format& format) {
  Format fine = format;
  if (flushes(format)) fine.field_zero = FieldZero::subnormal;
  return fine;
}

GridPoint mirrored(const GridPoint& p) { return {-p.value, p.odd}; }

/// The value after the largest one if the grid continued: at most one ulp further.
GridPoint next_after(const Format& format, const GridPoint& last) {
  double step = 1;
  if (format.kind == Kind::floating)
    step = std::ldexp(1.0, std::ilogb(last.value) - format.mantissa_bits);
  return {last.value + step, !last.odd};
}

/// The smallest normal number and the value before it if normal numbers continued below.
struct NormalEdge {
  GridPoint before, first;
};

NormalEdge normal_edge(const Format& format) {
  const double first = smallest_normal(format);
  const int exponent = std::ilogb(first);
  const bool starts_binade = first == std::ldexp(1.0, exponent);
  const double step = std::ldexp(1.0, exponent - format.mantissa_bits - (starts_binade ? 1 : 0));
  // Codes count through: 2^M is the first normal one, 1 without subnormals, 0 without zero.
  const bool odd = format.field_zero == FieldZero::normal ||
                   (format.field_zero != FieldZero::scale && format.mantissa_bits == 0);
  return {{first - step, !odd}, {first, odd}};
}

OutcomePiece fixed(double low, bool closed, double high, const PossibleResult& outcome) {
  return {low, high, closed, outcome, outcome};
}

/// Closes the lower end of a list at `at` and lets `outcome` reach from there to -infinity.
void put_below(double at, bool upper_owns, const PossibleResult& outcome,
               std::vector<OutcomePiece>* list) {
  list->front().low = at;
  list->front().low_closed = upper_owns;
  list->insert(list->begin(), fixed(-kInf, true, at, outcome));
}

void put_above(double at, bool upper_owns, const PossibleResult& outcome,
               std::vector<OutcomePiece>* list) {
  list->back().high = at;
  list->push_back(fixed(at, upper_owns, kInf, outcome));
}

RoundingMode mirrored(RoundingMode mode) {
  if (mode == RoundingMode::rup) return RoundingMode::rdn;
  if (mode == RoundingMode::rdn) return RoundingMode::rup;
  return mode;
}

/// Negative reals of a format without sign: what rounds to zero is zero, the rest is refused.
void put_negatives(const Format& format, const Rounding& rounding, Overflow overflow,
                   std::vector<OutcomePiece>* list) {
  const PossibleResult refused = beyond(format, rounding, overflow, true, 0);
  if (!format.has_zero()) return put_below(0, true, refused, list);
  const std::vector<Cell> mirror =
      cells(format, {.mode = mirrored(rounding.mode)}, false);  // of the magnitudes
  put_below(-mirror[1].low, !mirror[1].low_closed, refused, list);
}

std::vector<OutcomePiece> deterministic_pieces(const Format& format, const Rounding& rounding,
                                               Overflow overflow, bool symmetric) {
  std::vector<OutcomePiece> list;
  for (const Cell& cell : cells(format, rounding, symmetric))
    list.push_back(fixed(cell.low, cell.low_closed, cell.high, {.value = cell.value}));
  if (format.kind == Kind::sign) return list;
  const std::vector<GridPoint> grid = grid_points(rounding_grid(format), symmetric);
  const GridPoint first = grid.front(), last = grid.back();
  const PossibleResult above = beyond(format, rounding, overflow, false, last.value);
  if (format.kind == Kind::codebook) {
    put_above(last.value, false, above, &list);
    put_below(first.value, true, beyond(format, rounding, overflow, true, first.value), &list);
    return list;
  }
  const Boundary top = rounding_boundary(last, next_after(format, last), rounding.mode);
  put_above(top.at, top.upper, above, &list);
  if (!format.is_signed) {
    put_negatives(format, rounding, overflow, &list);
    return list;
  }
  const GridPoint before = mirrored(next_after(format, mirrored(first)));
  const Boundary bottom = rounding_boundary(before, first, rounding.mode);
  put_below(bottom.at, bottom.upper, beyond(format, rounding, overflow, true, first.value), &list);
  return list;
}

/// The gap between two neighbours of one sign, or from zero.
OutcomePiece gap(double low, double high, const PossibleResult& at_low,
                 const PossibleResult& at_high) {
  if (low >= 0) return {low, high, true, at_low, at_high, low, high};
  return {low, high, true, at_high, at_low, high, low};
}

std::vector<OutcomePiece> stochastic_pieces(const Format& format, const Rounding& rounding,
                                            Overflow overflow, bool symmetric) {
  const std::vector<GridPoint> grid = grid_points(rounding_grid(format), symmetric);
  const double first = grid.front().value, last = grid.back().value;
  const double normal = flushes(format) ? smallest_normal(format) : 0;
  const auto kept = [&](double v) { return PossibleResult{.value = std::abs(v) < normal ? 0 : v}; };
  const PossibleResult above = beyond(format, rounding, overflow, false, last);
  const PossibleResult below = beyond(format, rounding, overflow, true, first);
  std::vector<OutcomePiece> list;
  const auto add = [&](const OutcomePiece& piece) { list.push_back(piece); };
  if (format.kind == Kind::codebook) {
    add(fixed(-kInf, true, first, below));
  } else if (format.is_signed) {
    const double before = mirrored(next_after(format, mirrored(grid.front()))).value;
    add(fixed(-kInf, true, before, below));
    add(gap(before, first, below, {.value = first}));
  } else if (!format.has_zero()) {
    add(fixed(-kInf, true, 0, below));
    add(fixed(0, true, first, {.value = first}));
  } else {
    // Magnitudes that flush give zero whatever they round to; the first that does not is refused.
    const auto survives = [&](const GridPoint& p) { return kept(p.value).value != 0; };
    const auto edge = std::find_if(grid.begin(), grid.end(), survives);
    const double high = -std::prev(edge)->value, low = -edge->value;
    add(fixed(-kInf, true, low, below));
    add(gap(low, high, below, {}));
    if (high < 0) add(fixed(high, true, 0, {}));
  }
  for (std::size_t i = 0; i + 1 < grid.size(); ++i) {
    const double low = grid[i].value, high = grid[i + 1].value;
    if (low < 0 && high > 0) {  // a codebook without zero: the near end is on the other side
      add({low, 0, true, kept(high), kept(low), high, low});
      add({0, high, true, kept(low), kept(high), low, high});
    } else {
      add(gap(low, high, kept(low), kept(high)));
    }
  }
  if (format.kind == Kind::codebook) {
    add(fixed(last, true, last, {.value = last}));
    add(fixed(last, false, kInf, above));
    return list;
  }
  const double next = next_after(format, grid.back()).value;
  add(gap(last, next, {.value = last}, above));
  add(fixed(next, true, kInf, above));
  return list;
}

/// Tininess is judged on a grid whose normal numbers go on below the smallest one.
std::vector<OutcomePiece> tiny_pieces(const Format& format, const Rounding& rounding,
                                      const std::vector<OutcomePiece>& pieces) {
  const PossibleResult yes{.value = 1}, no{.value = 0};
  if (!has_tiny(format)) return {fixed(-kInf, true, kInf, no)};
  const auto [before, first] = normal_edge(format);
  std::vector<OutcomePiece> list;
  if (!format.is_signed) {
    for (const OutcomePiece& piece : pieces) {  // refused, or zero
      if (piece.low >= 0) break;
      OutcomePiece tiny = piece;
      tiny.high = std::min(piece.high, 0.0);
      tiny.near = piece.near.invalid ? no : yes;
      tiny.far = piece.far.invalid ? no : yes;
      list.push_back(tiny);
    }
    list.push_back(fixed(0, true, kInf, yes));
  } else {
    list.push_back(fixed(-kInf, true, kInf, yes));
    if (rounding.stochastic()) {
      put_below(-before.value, true, no, &list);
      list.front() = gap(-first.value, -before.value, no, yes);
      list.insert(list.begin(), fixed(-kInf, true, -first.value, no));
    } else {
      const Boundary edge = rounding_boundary(mirrored(first), mirrored(before), rounding.mode);
      put_below(edge.at, edge.upper, no, &list);
    }
  }
  if (rounding.stochastic()) {
    put_above(before.value, true, no, &list);
    list.back() = gap(before.value, first.value, yes, no);
    list.push_back(fixed(first.value, true, kInf, no));
  } else {
    const Boundary edge = rounding_boundary(before, first, rounding.mode);
    put_above(edge.at, edge.upper, no, &list);
  }
  return list;
}

}  // namespace

OutcomeLaw outcome_law(const Format& format, const Rounding& rounding, Overflow overflow,
                       bool symmetric) {
  const bool gaps = rounding.stochastic() && format.kind != Kind::sign;
  OutcomeLaw law{
      rounding,
      (gaps ? stochastic_pieces : deterministic_pieces)(format, rounding, overflow, symmetric),
      {}};
  law.tiny = tiny_pieces(format, rounding, law.pieces);
  return law;
}

const OutcomePiece& piece_at(const std::vector<OutcomePiece>& list, double x, double scale) {
  const auto begins_after = [scale](double value, const OutcomePiece& piece) {
    const double low = piece.low * scale;
    return low > value || (low == value && !piece.low_closed);
  };
  const auto next = std::upper_bound(list.begin(), list.end(), x, begins_after);
  return next == list.begin() ? list.front() : *std::prev(next);
}

double up_probability(const Rounding& rounding, double d) {
  const double steps = std::ldexp(1.0, rounding.random_bits), scaled = d * steps;
  const double down = std::floor(scaled), rest = scaled - down;
  switch (rounding.variant) {
    case StochasticVariant::a:
      return down / steps;
    case StochasticVariant::b:
      return std::floor(scaled + 0.5) / steps;
    case StochasticVariant::c:
    case StochasticVariant::odd:
      break;
  }
  const bool is_odd = std::fmod(down, 2) != 0;
  const bool tie_up = (rounding.variant == StochasticVariant::odd) != is_odd;
  return (rest > 0.5 || (rest == 0.5 && tie_up) ? down + 1 : down) / steps;
}

}  // namespace numemu
