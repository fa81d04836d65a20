// Builds the points from the values of a format, and finds elements among them.
#include "formats/element_table.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "formats/interned.hpp"

namespace numemu {
namespace {

constexpr int kDoubleBits = 53;
constexpr int kMostBits = 8;

/// Whether a + b is a float64 number.
bool exact_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return (a - (sum - part)) + (b - part) == 0;
}

/// All numbers at which a code or a flag may change: the values, the middles between neighbours,
/// and of floats the same two binades below the smallest value and one above the largest.
std::vector<double> points_of(const Format& f) {
  std::vector<double> points = finite_values(f);
  if (f.kind == Kind::floating) {
    const double largest = largest_value(f), smallest = smallest_value(f);
    for (const double v : {2 * largest, smallest / 2, smallest / 4}) {
      points.push_back(v);
      points.push_back(-v);
    }
    points.push_back(-largest);  // of formats without sign, too
    points.push_back(-smallest);
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  const std::size_t values = points.size();
  for (std::size_t i = 1; i < values; ++i) points.push_back((points[i - 1] + points[i]) / 2);
  points.push_back(0);
  points.push_back(-kInf);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

/// Whether values are float32 numbers, and the middles of neighbours float64 numbers.
bool has_narrow_values(const Format& f) {
  const std::vector<double> values = finite_values(f);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (static_cast<double>(static_cast<float>(values[i])) != values[i]) return false;
    if (i > 0 && !exact_sum(values[i - 1], values[i])) return false;
  }
  return true;
}

struct KeptTable {
  std::unique_ptr<const ElementTable> table;
};

bool has_table(const Conversion& c) {
  const Format& f = *c.format;
  const bool kind = f.kind == Kind::codebook || (f.kind == Kind::floating && f.mantissa_bits == 0);
  return kind && f.bits <= kMostBits && !c.rounding.stochastic() &&
         c.overflow == Overflow::saturate && has_narrow_values(f);
}

}  // namespace

const ElementTable* ElementTable::find(const Conversion& c) {
  const auto make = [&] {
    return std::make_unique<const KeptTable>(
        KeptTable{has_table(c) ? std::make_unique<const ElementTable>(c) : nullptr});
  };
  return Interned::find<KeptTable>(c.key(), make).table.get();
}

ElementTable::ElementTable(const Conversion& c) : points_(points_of(*c.format)) {
  const std::size_t n = points_.size();
  for (std::size_t k = 0; k < n; ++k) {
    const double at = k == 0 ? 2 * points_[1] - 1 : points_[k];
    const double above = k == 0       ? at
                         : k + 1 == n ? 2 * std::fabs(at) + 1
                                      : at + (points_[k + 1] - at) / 2;
    elements_.push_back(element_of(c, at));
    elements_.push_back(element_of(c, above));
    point_bits_ = std::max(point_bits_, significant_bits(value_of(points_[k])));
  }
  for (const Element& e : elements_) largest_ = std::max(largest_, std::fabs(e.value));
  minus_zero_ = element_of(c, -0.0);
}

ElementTable::Element ElementTable::element_of(const Conversion& c, double x) const {
  const Encoded encoded = encode_element(c, value_of(x), 0);
  const Value value = decode(*c.format, encoded.code);
  return {to_double(value), static_cast<std::uint8_t>(encoded.code), encoded.flags};
}

bool ElementTable::convert(const float* x, std::int64_t n, double scale,
                           const ElementArrays& to) const {
  // A point times the scale rounds by 2^-53 of it, or not at all.
  const double doubt = point_bits_ + significant_bits(value_of(scale)) <= kDoubleBits ? 0 : 0x1p-51;
  const double unit = scale == 0 ? 1 : scale, inverse = 1 / unit;
  const double* const points = points_.data();
  const std::size_t last = points_.size() - 1;
  bool some_open = false;
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = x[i], y = v * inverse;
    std::size_t k = 0;
    for (std::size_t count = points_.size(); count > 1;) {  // without a branch: x is not sorted
      const std::size_t half = count / 2;
      k += points[k + half] <= y ? half : 0;
      count -= half;
    }
    // The quotient is rounded; the products decide.
    while (k > 0 && v < points[k] * unit) --k;
    while (k < last && v >= points[k + 1] * unit) ++k;
    const double at = points[k] * unit;
    const Element& e =
        v == 0 && std::signbit(x[i]) ? minus_zero_ : elements_[2 * k + (at == v ? 0 : 1)];
    const double next = k < last ? points[k + 1] * unit : kInf;
    const bool open = doubt != 0 && v != 0 && std::min(v - at, next - v) <= doubt * std::fabs(v);
    to.open[i] = open ? 1 : 0;
    some_open = some_open || open;
    if (to.values != nullptr) to.values[i] = static_cast<float>(e.value * scale);
    if (to.codes != nullptr) to.codes[i] = e.code;
    if (to.flags != nullptr) to.flags[i] = e.flags;
  }
  return some_open;
}

}  // namespace numemu
