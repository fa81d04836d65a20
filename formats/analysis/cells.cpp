// The step function of a format, from its decoded codes and the rule of each rounding mode.
#include "formats/analysis/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

bool is_normal(const Format& format, double value) {
  return format.kind == Kind::floating && std::abs(value) >= smallest_normal(format);
}

/// Flushing comes after rounding to the grid that still has its subnormals: every cell of a
/// subnormal becomes part of the cell of zero.
std::vector<Cell> flush(const Format& format, std::vector<Cell> fine) {
  std::vector<Cell> out;
  for (Cell& cell : fine) {
    if (!is_normal(format, cell.value)) cell.value = 0;
    if (!out.empty() && out.back().value == cell.value) {
      out.back().high = cell.high;
    } else {
      out.push_back(cell);
    }
  }
  return out;
}

}  // namespace

std::vector<GridPoint> grid_points(const Format& format, bool symmetric) {
  if (format.bits > 16) {
    throw Error(fmt::format("format '{}': {} bits, cells are listed for at most 16", format.name,
                            format.bits));
  }
  const bool drop_lowest = symmetric && format.kind == Kind::integer && format.is_signed;
  std::vector<GridPoint> list;
  for (std::uint64_t code = 0; code <= format.last_code(); ++code) {
    const Value v = decode(format, code);
    if (drop_lowest && code == format.largest_code(true)) continue;
    if (v.kind == Class::zero && v.negative) continue;
    if (v.kind != Class::zero && v.kind != Class::finite) continue;
    try {
      list.push_back({to_double(v), (code & 1) != 0});
    } catch (const Error&) {
      throw Error(
          fmt::format("format '{}': its values leave the range of a float64, expected one "
                      "within it",
                      format.name));
    }
  }
  const auto less = [](const GridPoint& a, const GridPoint& b) { return a.value < b.value; };
  const auto same = [](const GridPoint& a, const GridPoint& b) { return a.value == b.value; };
  std::stable_sort(list.begin(), list.end(), less);
  list.erase(std::unique(list.begin(), list.end(), same), list.end());
  return list;
}

Boundary rounding_boundary(const GridPoint& low, const GridPoint& high, RoundingMode mode) {
  const double midpoint = std::midpoint(low.value, high.value);
  switch (mode) {
    case RoundingMode::rne:
      return {midpoint, !high.odd};
    case RoundingMode::rna:
      return {midpoint, midpoint >= 0};
    case RoundingMode::rtz: {
      // A gap of a codebook may reach across zero: all of it goes where zero would.
      const double below = std::abs(low.value), above = std::abs(high.value);
      if (below < above || (below == above && !low.odd)) return {high.value, true};
      return {low.value, false};
    }
    case RoundingMode::rup:
      return {low.value, false};
    case RoundingMode::rdn:
      return {high.value, true};
    case RoundingMode::rodd:
      if (high.odd) return {low.value, false};
      return {high.value, true};
    case RoundingMode::sr:
      break;
  }
  throw Error("stochastic rounding has no cells: use brackets");
}

std::vector<Cell> cells(const Format& format, const Rounding& rounding, bool symmetric) {
  // The sign is the same in every rounding mode; in rne the boundary is zero, which is positive.
  if (format.kind == Kind::sign && rounding != Rounding{}) return cells(format, {}, symmetric);
  if (rounding.stochastic()) throw Error("stochastic rounding has no cells: use brackets");
  if (format.kind != Kind::codebook && format.field_zero == FieldZero::flush) {
    Format fine = format;
    fine.field_zero = FieldZero::subnormal;
    return flush(format, cells(fine, rounding, symmetric));
  }
  const std::vector<GridPoint> grid = grid_points(format, symmetric);
  std::vector<Cell> out;
  out.reserve(grid.size());
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const Boundary low =
        i > 0 ? rounding_boundary(grid[i - 1], grid[i], rounding.mode) : Boundary{-kInf, true};
    if (i > 0) out.back().high = low.at;
    out.push_back({low.at, kInf, grid[i].value, is_normal(format, grid[i].value), low.upper});
  }
  return out;
}

std::vector<Cell> brackets(const Format& format, bool symmetric) {
  if (format.kind == Kind::sign) {
    throw Error(
        fmt::format("format '{}': a sign is never rounded stochastically: use cells", format.name));
  }
  const std::vector<GridPoint> grid = grid_points(format, symmetric);
  if (format.field_zero == FieldZero::flush) {
    throw Error(fmt::format(
        "format '{}': stochastic rounding followed by a flush of subnormals has no closed form",
        format.name));
  }
  if (grid.size() < 2) {
    throw Error(fmt::format("format '{}': {} value, brackets need two", format.name, grid.size()));
  }
  std::vector<Cell> out;
  out.reserve(grid.size() - 1);
  for (std::size_t i = 0; i + 1 < grid.size(); ++i) {
    const bool normal = is_normal(format, grid[i].value) && is_normal(format, grid[i + 1].value);
    out.push_back({grid[i].value, grid[i + 1].value, grid[i].value, normal, true});
  }
  return out;
}

float float_threshold(double bound, bool closed) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (bound > kLargest) return std::numeric_limits<float>::infinity();
  if (bound < -kLargest) return std::numeric_limits<float>::lowest();
  const auto nearest = static_cast<float>(bound);
  const bool fits = closed ? nearest >= bound : nearest > bound;
  return fits ? nearest : std::nextafterf(nearest, std::numeric_limits<float>::infinity());
}

CellSearch::CellSearch(std::vector<float> thresholds) : tree_(std::move(thresholds)) {
  levels_ = static_cast<int>(std::bit_width(tree_.size()));
  tree_.resize((std::size_t{1} << levels_) - 1, std::numeric_limits<float>::quiet_NaN());
}

void CellSearch::find(const float* x, int count, std::uint32_t* index) const {
  const float* const tree = tree_.data();
  for (int i = 0; i < count; ++i) index[i] = 0;
  for (int level = levels_ - 1; level >= 0; --level) {
    const std::uint32_t step = std::uint32_t{1} << level;
    for (int i = 0; i < count; ++i) {
      index[i] += static_cast<std::uint32_t>(x[i] >= tree[index[i] + step - 1]) << level;
    }
  }
}

}  // namespace numemu
