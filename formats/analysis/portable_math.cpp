#include "formats/analysis/portable_math.hpp"

#include <cmath>

namespace numemu::portable {
namespace {

// ln 2 in two parts, the first short enough for k * kLn2High to be exact.
constexpr double kLn2High = 0x1.62e42fefap-1, kLn2Low = 0x1.cf79abc9e3b39p-40;

}  // namespace

double log(double x) {
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < 0x1.6a09e667f3bcdp-1) {  // sqrt(1/2)
    m *= 2;
    --k;
  }
  // ln m = 2 atanh(z), |z| <= 0.172: the term left out is below 1e-19.
  const double z = (m - 1) / (m + 1), w = z * z;
  double sum = 0;
  for (int j = 23; j >= 3; j -= 2) sum = (sum + 1.0 / j) * w;
  return k * kLn2High + (2 * z + (2 * z * sum + k * kLn2Low));
}

double exp(double x) {
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;  // Taylor's series, |r| <= 0.35: the term left out is below 1e-18
  for (int j = 14; j >= 1; --j) sum = 1 + sum * r / j;
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace numemu::portable
