// A number as the sum of two doubles, about 106 bits: for steps whose rounding would reach the
// result.
#pragma once

namespace numemu::portable {

struct DoubleDouble {
  double high, low;  ///< |low| <= half an ulp of high
};

/// a + b exactly, |a| >= |b| or a = 0 (Dekker 1971).
constexpr DoubleDouble sum_of_ordered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// a + b exactly (Knuth).
constexpr DoubleDouble exact_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// a b exactly below 2^996, without a fused operation: it is slow on machines that lack one.
constexpr DoubleDouble exact_product(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double a_far = kSplit * a, b_far = kSplit * b;
  const double a_high = a_far - (a_far - a), b_high = b_far - (b_far - b);
  const double a_low = a - a_high, b_low = b - b_high, product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble sum = exact_sum(a.high, b.high);
  return sum_of_ordered(sum.high, sum.low + (a.low + b.low));
}

constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = exact_product(a.high, b.high);
  return sum_of_ordered(product.high, product.low + (a.high * b.low + a.low * b.high));
}

constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double quotient = a.high / b.high;
  const DoubleDouble taken = exact_product(quotient, b.high);
  const double rest = (a.high - taken.high) - taken.low + a.low - quotient * b.low;
  return sum_of_ordered(quotient, rest / b.high);
}

/// c[0] + c[1] x + ... by Horner's rule.
template <int N>
constexpr double polynomial(const double (&c)[N], double x) {
  double sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

}  // namespace numemu::portable
