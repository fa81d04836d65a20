// Products of a dot product as a sample of their law: what error models read.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "formats/format.hpp"

namespace numemu::unit {

/// Equally likely products, independent of each other. An operand that is a code of a narrow format
/// must be given as such: the bits it lacks decide which sums are exact.
struct ProductLaw {
  std::vector<double> products;
  /// Of the factors, added: what a fused step aligns by; kNoExponent of zero products.
  std::vector<int> exponents;
  double mean = 0, square = 0;  ///< of the products: mean, mean square
  double nonzero = 0;           ///< their share
  bool symmetric = false;       ///< p is as likely as -p
  int lowest_bit = 0;           ///< all products are multiples of 2^lowest_bit
  /// The law itself, of which `products` are a sample: every product of independent factors with
  /// its share, ascending. Empty where only the sample is known, or factors have many values.
  std::vector<double> values = {}, shares = {};

  static constexpr int kNoExponent = -(1 << 20);
  double variance() const { return square - mean * mean; }
};

/// Of the pairs a[i] b[i], exact in float64, as a layer has them. Formats give the smallest
/// exponents of factors; null: none. Throws Error where the sides differ in length, are empty, or
/// hold numbers that are not finite.
ProductLaw product_law(std::span<const double> a, std::span<const double> b,
                       const Format* a_format = nullptr, const Format* b_format = nullptr);
/// Of independent factors: b is put in an order in which the mean of the products is the product
/// of the means: a mean that is wrong by a standard error of the sample leads a long sum away.
/// Where a side is its own mirror image, so is the law: every product is there with both signs.
/// Factors of few values, as narrow formats have, give the law with its shares.
ProductLaw independent_products(std::span<const double> a, std::span<const double> b,
                                const Format* a_format = nullptr, const Format* b_format = nullptr);

}  // namespace numemu::unit
