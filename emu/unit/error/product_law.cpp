#include "emu/unit/error/product_law.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "emu/unit/error/sum_walk.hpp"
#include "emu/unit/operand.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

constexpr std::int64_t kExchanges = 4;  // tried, per pair
constexpr std::size_t kMostPairs = std::size_t{1} << 16;

int factor_exponent(double x, const Format* format) {
  const int own = std::ilogb(x);
  return format != nullptr && format->kind == Kind::floating
             ? std::max(own, smallest_normal_exponent(*format))
             : own;
}

/// The exponent of the lowest one bit.
int lowest_bit_of(double x) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  return exponent - 53 + std::countr_zero(significand);
}

bool own_mirror_image(std::span<const double> x) {
  std::vector<double> sorted(x.begin(), x.end());
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != -sorted[sorted.size() - 1 - i]) return false;
  }
  return true;
}

/// Different numbers with their shares.
std::map<double, double> shares_of(std::span<const double> x) {
  std::map<double, double> out;
  for (const double v : x) out[v] += 1 / static_cast<double>(x.size());
  return out;
}

/// Values and shares of the product of independent factors, where there are few; a mirrored law has
/// both signs of each.
void add_shares(ProductLaw& law, std::span<const double> a, std::span<const double> b,
                bool mirrored) {
  const std::map<double, double> left = shares_of(a), right = shares_of(b);
  if (left.size() * right.size() > kMostPairs) return;
  std::map<double, double> products;
  for (const auto& [x, of_x] : left) {
    for (const auto& [y, of_y] : right) {
      const double p = x * y;
      products[p] += mirrored ? of_x * of_y / 2 : of_x * of_y;
      if (mirrored) products[-p] += of_x * of_y / 2;
    }
  }
  law.square = 0;
  law.nonzero = 0;
  for (const auto& [p, share] : products) {
    law.values.push_back(p);
    law.shares.push_back(share);
    law.square += share * p * p;
    if (p != 0) law.nonzero += share;
  }
}

}  // namespace

ProductLaw product_law(std::span<const double> a, std::span<const double> b, const Format* a_format,
                       const Format* b_format) {
  if (a.empty() || a.size() != b.size())
    throw Error("product law: expected as many left as right factors, and at least one");
  ProductLaw law;
  const auto count = static_cast<double>(a.size());
  law.lowest_bit = 1 << 20;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double p = a[i] * b[i];
    if (!std::isfinite(p)) throw Error("product law: expected finite products");
    law.products.push_back(p);
    law.mean += p / count;
    law.square += p * p / count;
    if (p == 0) {
      law.exponents.push_back(ProductLaw::kNoExponent);
      continue;
    }
    law.nonzero += 1 / count;
    law.exponents.push_back(factor_exponent(a[i], a_format) + factor_exponent(b[i], b_format));
    law.lowest_bit = std::min(law.lowest_bit, lowest_bit_of(p));
  }
  return law;
}

ProductLaw independent_products(std::span<const double> a, std::span<const double> b,
                                const Format* a_format, const Format* b_format) {
  if (a.size() != b.size() || a.empty()) return product_law(a, b);  // throws
  const auto n = static_cast<std::int64_t>(a.size());
  std::vector<double> order(b.begin(), b.end());
  double a_sum = 0, b_sum = 0, above = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    a_sum += a[i];
    b_sum += b[i];
    above += a[i] * b[i];
  }
  above -= a_sum * b_sum / static_cast<double>(n);
  // Exchanges that bring the sum of products nearer.
  Draws draws(static_cast<std::uint64_t>(n));
  for (std::int64_t trial = 0; trial < kExchanges * n; ++trial) {
    const std::int64_t i = draws.below(n), j = draws.below(n);
    const double next = above - (a[i] - a[j]) * (order[i] - order[j]);
    if (!(std::fabs(next) < std::fabs(above))) continue;
    std::swap(order[i], order[j]);
    above = next;
  }
  const bool mirrored = own_mirror_image(a) || own_mirror_image(b);
  std::vector<double> left(a.begin(), a.end());
  if (mirrored) {
    left.insert(left.end(), a.begin(), a.end());
    for (std::int64_t i = 0; i < n; ++i) order.push_back(-order[i]);
  }
  ProductLaw law = product_law(left, order, a_format, b_format);
  law.symmetric = mirrored;
  law.mean = mirrored ? 0 : a_sum / static_cast<double>(n) * b_sum / static_cast<double>(n);
  add_shares(law, a, b, mirrored);
  return law;
}

}  // namespace numemu::unit
