// Products whose operands are rotated beside those of the operands as they are.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "emu/net/numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace numemu::policies::test {

/// Checks that rotated products differ from plain ones by no more than float32 rounding, and that
/// the others are plain.
struct RotatedProducts final : net::Forwarding {
  using Forwarding::Forwarding;
  static constexpr double kRounding = 0x1p-24;  // of a float32 operation, relative

  /// The rows of matrix i of an operand.
  static std::vector<float> rows_of(const net::ProductSide& side, std::int64_t i, std::int64_t rows,
                                    std::int64_t depth) {
    return gathered(side, i, rows, depth, 0.0f,
                    [&](std::int64_t e) { return side.source->data[e]; });
  }

  void product(const net::Step& step, const net::Product& p) override {
    Forwarding::product(step, p);
    std::vector<float> plain(static_cast<std::size_t>(p.d_stack.count() * p.m * p.n));
    net::Product as_is = p;
    as_is.d = plain.data();
    net::Numerics().product(step, as_is);
    ++products;
    if (!rotated.contains(p.kind)) {
      CHECK(differences({p.d, p.d + plain.size()}, plain) == 0);
      return;
    }
    // A rotated element is `levels` additions deep, and at most the sum of its block's magnitudes
    // times the scale; b products of such elements have the scales' product 1 / b. A sum of K
    // products rounds K times, on both sides.
    const double levels = std::countr_zero(static_cast<std::uint64_t>(block));
    const double share = (2 * levels + 2 * static_cast<double>(p.k) + 2) * kRounding;
    for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
      const std::vector<float> a = rows_of(p.a, i, p.m, p.k), b = rows_of(p.b, i, p.n, p.k),
                               d = result_of(p, i), expected = result_of(as_is, i);
      for (std::int64_t e = 0; e < p.m * p.n; ++e) {
        double bound = 0;
        for (std::int64_t k = 0; k < p.k; k += block) {
          double left = 0, right = 0;
          for (std::int64_t c = k; c < std::min(k + block, p.k); ++c) {
            left += std::fabs(double{a[e / p.n * p.k + c]});
            right += std::fabs(double{b[e % p.n * p.k + c]});
          }
          bound += left * right;
        }
        CHECK(std::fabs(double{d[e]} - expected[e]) <= share * bound);
        differ += d[e] != expected[e];
      }
    }
  }

  std::set<net::GemmKind> rotated;
  std::int64_t block = 0, products = 0, differ = 0;
};

}  // namespace numemu::policies::test
