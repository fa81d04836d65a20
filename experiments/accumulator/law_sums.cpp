#include "experiments/accumulator/law_sums.hpp"

#include <algorithm>
#include <cmath>

#include "emu/stats/mean.hpp"
#include "emu/unit/result_values.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/containers.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"
#include "formats/suggest.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kQuantiles = 4096;

/// The number of a law at its quantile u; `left`: the first operand.
double number_of(const SumCase& c, bool left, double u) {
  const double z = u < 0.5 ? normal::quantile(u) : -normal::quantile(1 - u);
  if (c.law == "positive") return std::fabs(z);
  if (c.law == "uniform") return 2 * u - 1;
  return c.law == "rectified" && left ? std::max(0.0, z) : z;
}

/// Codes of an operand and their values.
struct Drawn {
  std::vector<std::uint8_t> codes;
  std::vector<float> values;
};

template <class Quantile>
Drawn drawn(const SumCase& c, bool left, std::int64_t n, const Quantile& quantile) {
  const Format &format = find_format(c.format), &float32 = find_format("float32");
  const double scale = format.kind == Kind::integer ? largest_value(format) / 4 : 1;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(scale * number_of(c, left, quantile(i)));
  Drawn out;
  out.codes.resize(x.size() * static_cast<std::size_t>(container_bytes(format)));
  out.values.resize(x.size());
  convert_codes(Conversion{.format = &format, .overflow = Overflow::saturate}, float32, x.data(), n,
                out.codes.data());
  convert_codes(Conversion{.format = &float32}, format, out.codes.data(), n, out.values.data());
  return out;
}

}  // namespace

const std::vector<std::string>& sum_laws() {
  static const std::vector<std::string> laws = {"normal", "positive", "uniform", "rectified"};
  return laws;
}

void check_sum_law(const std::string& law) {
  if (std::ranges::find(sum_laws(), law) == sum_laws().end())
    throw Error(unknown_name("law", law, {sum_laws().begin(), sum_laws().end()}));
}

unit::SumError predicted_sums(const SumCase& c) {
  constexpr std::int64_t kShuffle = 1597;  // odd: every quantile once
  const auto middle = [](std::int64_t i) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(kQuantiles);
  };
  const Drawn a = drawn(c, true, kQuantiles, middle),
              b = drawn(c, false, kQuantiles,
                        [&](std::int64_t i) { return middle(i * kShuffle % kQuantiles); });
  const Format& format = find_format(c.format);
  const std::vector<double> x(a.values.begin(), a.values.end()),
      y(b.values.begin(), b.values.end());
  return unit::sum_error(*unit::find_unit(c.unit).description(),
                         unit::independent_products(x, y, &format, &format), c.depth);
}

MeasuredSums measured_sums(const SumCase& c, std::int64_t rows, std::uint64_t seed) {
  const unit::Unit& unit = unit::find_unit(c.unit);
  const Format& format = find_format(c.format);
  unit.require_operand(format);
  const auto lines = [&](bool left) {
    const RandomSource source{
        .seed = seed, .stream = Stream::data, .tensor = left ? 1u : 2u, .draw = 0};
    return drawn(c, left, rows * c.depth,
                 [&](std::int64_t i) { return source.uniform(i) + 0x1p-33; });
  };
  const Drawn a = lines(true), b = lines(false);
  const unit::Gather gather = unit::Gather::matrix(rows, c.depth);
  std::vector<std::uint64_t> d(static_cast<std::size_t>(rows * rows));
  unit.multiply({.m = rows,
                 .n = rows,
                 .k = c.depth,
                 .a = {&format, a.codes.data(), &gather, nullptr},
                 .b = {&format, b.codes.data(), &gather, nullptr},
                 .d = d.data(),
                 .seed = seed});
  const std::vector<double> results = unit::result_values(unit, d.data(), rows * rows);
  MeasuredSums out;
  std::vector<double> by_row;
  double finite = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    double noise = 0, count = 0;
    for (std::int64_t j = 0; j < rows; ++j) {
      const double result = results[i * rows + j];
      if (!std::isfinite(result)) continue;
      const double exact = pairwise_sum(c.depth, [&](std::int64_t k) {
        return double{a.values[i * c.depth + k]} * b.values[j * c.depth + k];
      });
      noise += (result - exact) * (result - exact);
      out.signal += exact * exact;
      out.bias += result - exact;
      count += 1;
    }
    finite += count;
    if (count > 0) by_row.push_back(noise / count);
  }
  out.lost = 1 - finite / static_cast<double>(rows * rows);
  if (by_row.empty()) return out;
  out.signal /= finite;
  out.bias /= finite;
  const stats::Mean mean = stats::mean_of(by_row);
  out.noise = mean.value;
  out.noise_error = mean.error;
  return out;
}

}  // namespace numemu::experiments
