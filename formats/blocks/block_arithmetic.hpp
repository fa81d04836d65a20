// Exact products, sums and quotients of a few values: what block formats compute before they round.
#pragma once
#include "formats/value.hpp"

namespace numemu {

/// a * b. Of numbers, the widths of the significands add up to at most 64 bits; 0 * Inf is NaN.
Value exact_product(const Value& a, const Value& b);

/// a + b with a sticky bit. Significands of at most 40 bits, exponents as float32's or products of
/// two such; opposite infinities give NaN, exact cancellation +0.
Value exact_sum(const Value& a, const Value& b);

/// (a - b) / s with a sticky bit and at least 60 significant bits, so that even sr(32) has one
/// rounding. a, b float32 numbers; s finite, positive and at most 40 bits wide.
Value quotient_of_difference(const Value& a, const Value& b, const Value& s);

}  // namespace numemu
