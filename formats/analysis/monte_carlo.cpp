#include "formats/analysis/monte_carlo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/error.hpp"

namespace numemu {
namespace {

/// Every code's value.
std::vector<double> decoded(const Format& format) {
  if (format.bits > 16) {
    throw Error(fmt::format("format '{}': {} bits, expected at most 16", format.name, format.bits));
  }
  std::vector<double> table;
  for (std::uint64_t code = 0; code <= format.code_mask(); ++code)
    table.push_back(to_double(decode(format, code)));
  return table;
}

template <class Number>
ErrorFigures figures_of(const Conversion& c, double scale, std::int64_t n, const Number& number) {
  if (!(scale > 0) || std::isinf(scale))
    throw Error("error figures: the scale must be finite and positive");
  if (n <= 0) throw Error("error figures of an empty sample");
  constexpr std::int64_t kChunk = 16384;
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  const std::vector<double> values = decoded(*c.format);
  const Value divisor = value_of(scale);
  std::vector<FigureSums> parts(static_cast<std::size_t>(chunks));
#pragma omp parallel for schedule(dynamic) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    FigureSums sums;
    for (std::int64_t i = chunk * kChunk; i < std::min(n, (chunk + 1) * kChunk); ++i) {
      const double x = number(i);
      const Value exact = value_of(x);
      const Encoded result =
          encode_element(c, scale == 1 ? exact : exact_quotient(exact, divisor), i);
      sums.add(1, x, values[result.code] * scale);
      sums.overflow += (result.flags & kOverflow) != 0;
      sums.underflow += (result.flags & kUnderflow) != 0;
    }
    parts[chunk] = sums;
  }
  FigureSums sums;
  for (const FigureSums& part : parts) sums += part;
  return sums.figures();
}

}  // namespace

ErrorFigures monte_carlo(const Conversion& c, double scale, const Distribution& distribution,
                         std::uint64_t seed, std::int64_t n) {
  const RandomSource source{.seed = seed, .stream = Stream::data};
  return figures_of(c, scale, n, [&](std::int64_t i) {
    return distribution.draw(source, static_cast<std::uint64_t>(i));
  });
}

ErrorFigures measure(const Conversion& c, double scale, const double* x, std::int64_t n) {
  return figures_of(c, scale, n, [x](std::int64_t i) { return x[i]; });
}

}  // namespace numemu
