#include "experiments/binarized/signs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/stats/mean.hpp"
#include "emu/unit/unit.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::binarized {

double power_gain(double deviation, double boundary) {
  constexpr int kBinades = 64;  // of deviations near 1: what lies outside is below 2^-60 of the sum
  double sum = 0;
  for (int k = -kBinades; k <= kBinades; ++k) {
    const double power = std::ldexp(1.0, k);
    sum += power * (normal::pdf(boundary * power / 2 / deviation) -
                    normal::pdf(boundary * power / deviation));
  }
  return 2 / deviation * sum;
}

double shift_deviation(double deviation) {
  const double v = power_gain(deviation, kApproximate) * deviation * deviation;
  return deviation * core::power_of_two(1 / std::sqrt(v));
}

Threshold fold(double scale, double mean, double bias) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  if (scale == 0) return {bias >= 0 ? -kFar : kFar, true};
  const double bound = mean - bias / scale;
  const double whole = scale > 0 ? std::ceil(bound) : std::floor(bound);
  const double far = static_cast<double>(kFar);
  return {static_cast<std::int64_t>(std::clamp(whole, -far, far)), scale > 0};
}

// XNOR and popcount: the unit against counted bits.

std::vector<std::int32_t> sign_products(const std::vector<std::uint8_t>& a,
                                        const std::vector<std::uint8_t>& b, std::int64_t depth) {
  const auto size = [&](const std::vector<std::uint8_t>& codes) {
    return static_cast<std::int64_t>(codes.size()) / depth;
  };
  const Format& sign = find_format("sign1");
  const unit::Gather rows = unit::Gather::matrix(size(a), depth),
                     columns = unit::Gather::matrix(size(b), depth);
  std::vector<std::int32_t> d(static_cast<std::size_t>(size(a) * size(b)));
  unit::find_unit("neutral.xnor")
      .multiply({.m = size(a),
                 .n = size(b),
                 .k = depth,
                 .a = {&sign, a.data(), &rows},
                 .b = {&sign, b.data(), &columns},
                 .d = d.data()});
  return d;
}

void add_xnor(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr std::int64_t kLines = 16, kWord = 64;
  for (const std::int64_t depth : run.settings.whole_numbers("lengths")) {
    const std::int64_t words = (depth + kWord - 1) / kWord;
    const RandomSource random{run.seed, Stream::vectors, static_cast<std::uint32_t>(depth)};
    std::vector<std::uint64_t> packed(static_cast<std::size_t>(2 * kLines * words));
    std::vector<std::uint8_t> a, b;
    for (std::int64_t line = 0; line < 2 * kLines; ++line) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const auto bit =
            static_cast<std::uint8_t>(random.bits(static_cast<std::uint64_t>(line * depth + k), 1));
        (line < kLines ? a : b).push_back(bit);
        packed[line * words + k / kWord] |= std::uint64_t{bit} << (k % kWord);
      }
    }
    const std::vector<std::int32_t> d = sign_products(a, b, depth);
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < kLines; ++i) {
      for (std::int64_t j = 0; j < kLines; ++j) {
        std::int64_t agree = 0;
        for (std::int64_t w = 0; w < words; ++w) {
          const std::int64_t used = std::min(kWord, depth - w * kWord);
          const std::uint64_t mask = ~std::uint64_t{0} >> (kWord - used);
          agree +=
              std::popcount(~(packed[i * words + w] ^ packed[(kLines + j) * words + w]) & mask);
        }
        differ += d[i * kLines + j] != 2 * agree - depth;
      }
    }
    conclusion.add(
        exact_finding(
            fmt::format("products of {} signs that differ from 2 popcount(XNOR) - {}, of {}", depth,
                        depth, kLines * kLines),
            0, static_cast<double>(differ), differ == 0),
        "xnor");
  }
}

// Powers of two on normal numbers: the shift-based variance, its reciprocal root, and rounding to
// powers of two by a format.

namespace {

constexpr std::int64_t kParts = 64;  // independent: their spread gives the standard error

/// [samples / kParts, kParts] normal numbers: a channel is a part.
std::vector<float> normals(const ExperimentRun& run, std::int64_t samples, double deviation) {
  const RandomSource random{run.seed, Stream::vectors,
                            static_cast<std::uint32_t>(std::lround(deviation * 4096))};
  std::vector<float> x(static_cast<std::size_t>(samples / kParts * kParts));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(deviation * normal::draw(random, i));
  return x;
}

}  // namespace

void add_shifts(const ExperimentRun& run, Conclusion& conclusion) {
  using Rule = net::NormRule;
  const std::int64_t samples = run.settings.integer("samples");
  const Conversion nearest{.format = &find_format("e5m0+finite")};
  Chart chart{
      .title = "Rounding to powers of two on normal numbers",
      .caption =
          "E[x q(x)] / E[x^2] over the standard deviation: AP2 rounds log2 x (boundary sqrt 2), "
          "the format e5m0 to the nearest value (boundary 1.5, rne). 1 would be unbiased.",
      .x = "standard deviation",
      .y = "gain"};
  for (const char* name : {"AP2, predicted", "AP2, measured", "e5m0, predicted", "e5m0, measured"})
    chart.series.push_back({name, {}, std::string(name).ends_with("predicted")});
  for (const double deviation : run.settings.numbers("deviations")) {
    const std::vector<float> x = normals(run, samples, deviation);
    const std::int64_t rows = samples / kParts;
    const net::BatchStatistics exact = net::batch_statistics(x.data(), rows, kParts, {}),
                               shift = net::batch_statistics(x.data(), rows, kParts,
                                                             {.statistic = Rule::Statistic::shift});
    std::vector<float> rounded(x.size());
    quantize_values(nearest, x.data(), static_cast<std::int64_t>(x.size()), 1, rounded.data());
    std::vector<double> gains, of_nearest, deviations;
    for (std::int64_t part = 0; part < kParts; ++part) {
      double product = 0, squares = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::size_t i = static_cast<std::size_t>(r * kParts + part);
        product += double{x[i]} * rounded[i];
        squares += double{x[i]} * x[i];
      }
      of_nearest.push_back(product / squares);
      gains.push_back(shift.variance[part] / exact.variance[part]);
      deviations.push_back(std::sqrt(exact.variance[part]) *

                           core::power_of_two(1 / std::sqrt(shift.variance[part])));
    }
    const auto judge = [&](const char* what, double predicted, const std::vector<double>& parts,
                           std::size_t series) {
      const stats::Mean measured = stats::mean_of(parts);
      conclusion.add(closed_form(fmt::format("{}, deviation {}", what, deviation), predicted,
                                 measured.value, measured.error),
                     "powers of two");
      if (series == chart.series.size()) return;
      const Finding& finding = conclusion.findings.back();
      chart.series[series].points.push_back({.x = deviation, .y = predicted});
      chart.series[series + 1].points.push_back(
          {.x = deviation, .y = measured.value, .low = finding.low, .high = finding.high});
    };
    judge("shift-based variance over variance", power_gain(deviation, kApproximate), gains, 0);
    judge("gain of powers of two by a format without mantissa", power_gain(deviation, kNearest),
          of_nearest, 2);
    judge("deviation after the shift-based normalisation", shift_deviation(deviation), deviations,
          chart.series.size());
  }
  conclusion.charts.push_back(std::move(chart));
}

namespace {

Json clipped_masters() { return {{"rule", "clip"}}; }

Json float32_input(const std::string& first) {
  return {{"match", first}, {"roles", {{"activation", nullptr}}}};
}

}  // namespace

Json signs(const std::string& first) {
  const Json sign = {{"format", "sign1"}, {"scale", "none"}, {"ste", "clipped"}};
  Json input = float32_input(first);
  input["gemms"] = {{"fprop", {{"unit", "f32.sequential"}}}};
  return {{"roles", {{"weight", sign}, {"activation", sign}}},
          {"gemms", {{"fprop", {{"unit", "neutral.xnor"}}}}},
          {"update", clipped_masters()},
          {"layers", Json::array({input})}};
}

Json with_shifts(Json recipe) {
  recipe["norm"] = {{"statistic", "shift"}};
  return recipe;
}

Json with_shift_adamax(Json recipe) {
  recipe["objectives"] = Json::array({{{"rule", "cross_entropy"}, {"optimizer", "shift-adamax"}}});
  return recipe;
}

Json as_binarynet(Json recipe) {
  if (recipe.contains("update")) recipe["update"]["rule"] = "clip(1,true)";
  if (!recipe.contains("objectives")) recipe["objectives"] = Json::array({Json::object()});
  recipe["objectives"][0]["rule"] = "squared_hinge";
  return recipe;
}

Json few_bits(int bits, const std::string& first) {
  // One exponent bit: subnormals and the only binade of normals have the same step. Bias 2 puts
  // that step at 2^(1-bits). Masters never leave [-1, 1] and hard tanh holds activations there, so
  // that gradients need no clipping. Weights begin far below 1, where that grid has nothing but 0:
  // a power of two brings it to them, with its end at about twice their deviation.
  const Json grid = {{"format", fmt::format("e1m{}b2+finite", bits - 2)}, {"scale", "none"}};
  Json weight = grid;
  weight["scale"] = bits == 2 ? "pow2(detuned(absmax,0.375))" : "pow2(detuned(absmax,0.5))";
  return {{"roles",
           {{"weight", weight},
            {"activation", grid},
            {"gradient", {{"format", "e5m0+finite"}, {"scale", "pow2(absmax,up)"}}}}},
          {"update", clipped_masters()},
          {"layers", Json::array({float32_input(first)})}};
}

}  // namespace numemu::experiments::binarized
