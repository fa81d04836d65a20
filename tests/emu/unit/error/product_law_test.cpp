#include "emu/unit/error/product_law.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace product_law_test {

using namespace numemu;
using namespace numemu::unit;

TEST_CASE("product law: moments, zeros, exponents, the lowest bit", "[fast]") {
  const std::vector<double> a = {1.5, 0, -0.25, 3}, b = {2, 7, 0.5, 0.75};
  const ProductLaw law = product_law(a, b);
  CHECK(law.products == std::vector<double>{3, 0, -0.125, 2.25});
  CHECK(law.mean == (3 - 0.125 + 2.25) / 4);
  CHECK(law.square == (9 + 0.015625 + 5.0625) / 4);
  CHECK(law.nonzero == 0.75);
  CHECK(law.lowest_bit == -3);
  CHECK(law.exponents == std::vector<int>{1, ProductLaw::kNoExponent, -3, 0});
  CHECK_FALSE(law.symmetric);
}

TEST_CASE("product law: independent factors keep the product of their means", "[fast]") {
  std::vector<double> a, b;
  for (int i = 0; i < 512; ++i) {
    a.push_back(std::sqrt(i + 1.0));
    b.push_back(std::sin(i * 0.37) + 0.2);
  }
  double mean_a = 0, mean_b = 0;
  for (int i = 0; i < 512; ++i) {
    mean_a += a[i] / 512;
    mean_b += b[i] / 512;
  }
  const ProductLaw law = independent_products(a, b);
  CHECK(law.products.size() == 512);
  CHECK(std::fabs(law.mean - mean_a * mean_b) < 1e-4 * std::sqrt(law.square));
}

TEST_CASE("product law: a side that mirrors itself", "[fast]") {
  const ProductLaw law =
      independent_products(std::vector<double>{1, 2, 3, 4}, std::vector<double>{-2, -1, 1, 2});
  CHECK(law.symmetric);
  CHECK(law.mean == 0);
  CHECK(law.products.size() == 8);
}

TEST_CASE("product law: few factors give the law with its shares", "[fast]") {
  const ProductLaw law =
      independent_products(std::vector<double>{1, 1, 2, 3}, std::vector<double>{0, 0.5, 1, 1});
  CHECK(law.values == std::vector<double>{0, 0.5, 1, 1.5, 2, 3});
  // Halves of 1, 2, 3 in 2:1:1, doubled by the share of 1 on the right.
  CHECK(law.shares == std::vector<double>{0.25, 0.125, 0.25 + 0.0625, 0.0625, 0.125, 0.125});
  CHECK(law.mean == 1.75 * 0.625);
  CHECK(law.square == 3.75 * 0.5625);
  CHECK(law.nonzero == 0.75);
  const ProductLaw mirrored =
      independent_products(std::vector<double>{1, 2}, std::vector<double>{-3, 3});
  CHECK(mirrored.values == std::vector<double>{-6, -3, 3, 6});
  CHECK(mirrored.shares == std::vector<double>(4, 0.25));
  std::vector<double> many;
  for (int i = 0; i < 300; ++i) many.push_back(std::sqrt(i + 1.0));
  CHECK(independent_products(many, many).values.empty());
}

TEST_CASE("product law: refused operands", "[fast]") {
  CHECK_THROWS_AS(product_law(std::vector<double>{}, std::vector<double>{}), Error);
  CHECK_THROWS_AS(product_law(std::vector<double>{1}, std::vector<double>{1, 2}), Error);
  CHECK_THROWS_AS(product_law(std::vector<double>{std::numeric_limits<double>::infinity()},
                              std::vector<double>{1}),
                  Error);
}

}  // namespace product_law_test
