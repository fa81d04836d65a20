#include "experiments/hfp8/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <utility>

#include "emu/unit/unit.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/codec.hpp"
#include "formats/digest.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::hfp8 {

double relative_noise(int mantissa) {
  return 3 / (8 * std::numbers::ln2) * std::ldexp(1, -2 * mantissa) / 12;
}

double noise_to_signal(int mantissa) {
  return std::numbers::ln2 / 18 * std::ldexp(1, -2 * mantissa);
}

AddedAt added_by(std::shared_ptr<const Density> law, double mean) {
  const std::vector<double> knots = law->knots();
  return [law = std::move(law), low = knots.front(), high = knots.back(), mean](double ulp) {
    constexpr double kFine = 1e-3;  // of the range: rounding changes neither the mean nor much else
    if (ulp < kFine * (high - low)) return Added{mean, ulp * ulp / 12};
    Added added;
    for (double k = std::floor(low / ulp); k <= std::ceil(high / ulp); ++k) {
      const Density::Moments m = law->moments((k - 0.5) * ulp, (k + 0.5) * ulp);
      added.mean += k * ulp * m.p0;
      added.variance += m.p2 - 2 * k * ulp * m.p1 + k * k * ulp * ulp * m.p0;
    }
    return added;
  };
}

AddedAt added_by(double v) {
  return [v](double ulp) {
    const double whole = std::floor(v / ulp), rest = v / ulp - whole;
    // The register is even where a tie first occurs: an addition that is lost leaves it so.
    const double rounded = ulp * (rest > 0.5 ? whole + 1 : whole);
    return Added{rounded, (rounded - v) * (rounded - v)};
  };
}

double expected_sum(const AddedAt& added, double mean, double count, int mantissa) {
  double sum = mean, left = count - 1;
  while (left > 0) {
    const int binade = std::ilogb(sum);
    const double step = added(std::ldexp(1, binade - mantissa)).mean;
    if (!(step > 0)) return sum;  // the register has stalled
    const double room = std::ldexp(1, binade + 1) - sum;
    const double adds = std::min(left, std::max(1.0, room / step));
    sum += adds * step;
    left -= adds;
  }
  return sum;
}

double expected_chunked_sum(const AddedAt& added, double mean, double deviation, double count,
                            double chunk, int mantissa) {
  const double each = expected_sum(added, mean, std::min(chunk, count), mantissa);
  if (chunk >= count) return each;
  const AddedAt of_chunks = deviation > 0 ? added_by(std::shared_ptr<const Density>(normal_density(
                                                         each, deviation * std::sqrt(chunk))),
                                                     each)
                                          : added_by(each);
  return expected_sum(of_chunks, each, count / chunk, mantissa);
}

double retuned_share(double of_weights, double of_inputs, double mean_square) {
  return 1 - of_weights * mean_square / (of_weights + of_inputs);
}

// Numbers rounded to the formats of HFP8, and sums in its 1-6-9 register.

namespace {

constexpr const char* kRegister = "hfp16_e6m9";
constexpr int kMantissa = 9;
constexpr double kSumHolds = 0.02;       // of the predicted sum
constexpr double kConstantHolds = 0.02;  // relative, of the log-uniform noise at 2 and more bits

/// The squared error of normal numbers over their mean square sigma^2, as the codec rounds them.
MeanError noise_of(const Format& format, double sigma, std::int64_t samples, std::uint64_t seed) {
  const RandomSource random{seed, Stream::data, tensor_word(format.name), 0};
  RunningMean noise;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto x = static_cast<float>(sigma * normal::draw(random, static_cast<std::uint64_t>(i)));
    float y = 0;
    quantize_values({.format = &format}, &x, 1, 1, &y);
    const double error = (double{y} - x) / sigma;
    noise.add(error * error);
  }
  return noise.mean(1);
}

std::string unit_of(std::int64_t chunk) {
  return chunk == 1 ? fmt::format("neutral.mac.{}", kRegister)
                    : fmt::format("neutral.chunk{}.{}", chunk, kRegister);
}

}  // namespace

MeanError measured_sums(const std::string& unit_name, double deviation, std::int64_t count,
                        std::int64_t repeats, std::uint64_t seed) {
  const unit::Unit& unit = unit::find_unit(unit_name);
  const Format& format = find_format(kRegister);
  const RandomSource random{seed, Stream::data, tensor_word("hfp8/sums"), 0};
  std::vector<float> x(static_cast<std::size_t>(repeats * count));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(1 + std::sqrt(3.0) * deviation * (2 * random.uniform(i) - 1));
  std::vector<std::uint16_t> a(x.size()), b(static_cast<std::size_t>(count)),
      d(static_cast<std::size_t>(repeats));
  quantize_codes({.format = &format}, x.data(), std::ssize(x), 1, a.data());
  const std::vector<float> ones(b.size(), 1);
  quantize_codes({.format = &format}, ones.data(), count, 1, b.data());
  const unit::Gather rows = unit::Gather::matrix(repeats, count),
                     column = unit::Gather::matrix(1, count);
  unit.multiply({.m = repeats,
                 .n = 1,
                 .k = count,
                 .a = {&format, a.data(), &rows},
                 .b = {&format, b.data(), &column},
                 .d = d.data(),
                 .seed = seed});
  RunningMean ratio;
  for (std::int64_t r = 0; r < repeats; ++r) {
    double exact = 0;
    for (std::int64_t i = 0; i < count; ++i) exact += to_double(decode(format, a[r * count + i]));
    ratio.add(to_double(decode(*unit.d_format(), d[r])) / exact);
  }
  return ratio.mean(1);
}

void add_rounding(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t samples = run.settings.integer("samples");
  struct Case {
    const char* format;
    double sigma;
  };
  std::vector<Case> cases;
  for (const double sigma : {1.0, 1e-3, 1e-5}) {
    for (const char* format : {"hfp8_e4m3", "float8_e4m3", "hfp8_e5m2", kRegister})
      cases.push_back({format, sigma});
  }
  const std::vector<MeanError> results = run_cases<MeanError>(
      run, cases,
      [&](const Case& c) -> TypedTrial<MeanError> {
        return {{{"part", "rounding"},
                 {"format", c.format},
                 {"sigma", c.sigma},
                 {"samples", samples},
                 {"seed", run.seed}},
                fmt::format("{} of sigma {}", c.format, c.sigma),
                [=, seed = run.seed] {
                  return noise_of(find_format(c.format), c.sigma, samples, seed);
                }};
      },
      true);
  ResultTable table{"Noise over signal of normal numbers, to nearest",
                    {"format", "sigma", "log-uniform law", "predicted", "measured", "SQNR, dB"},
                    {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Format& format = find_format(cases[i].format);
    const double sigma = cases[i].sigma;
    const auto [measured, error] = results[i];
    const double predicted =
        error_moments(cells(format, {}, false), 1, *normal_density(0, sigma)).mse / (sigma * sigma);
    conclusion.add(closed_form(fmt::format("noise over signal of {}, sigma {}", format.name, sigma),
                               predicted, measured, error),
                   "rounding");
    const double constant = relative_noise(format.mantissa_bits);
    if (sigma == 1) {
      conclusion.add(
          model_finding(fmt::format("noise over signal of {} by 0.0451 4^-m, sigma 1", format.name),
                        constant, measured, error, kConstantHolds * constant),
          "constant");
    }
    table.rows.push_back({format.name, fmt::format("{}", sigma), fmt::format("{:.3e}", constant),
                          fmt::format("{:.4g}", predicted), fmt::format("{:.4g}", measured),
                          fmt::format("{:.1f}", -10 * portable::log10(measured))});
  }
  conclusion.tables.push_back(std::move(table));
}

void add_sums(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> lengths = run.settings.whole_numbers("lengths"),
                                  chunks = run.settings.whole_numbers("chunks");
  const std::int64_t repeats = run.settings.integer("repeats");
  struct Case {
    double deviation;
    std::int64_t chunk, length;
  };
  std::vector<Case> cases;
  for (const double deviation : {0.0, 1.0}) {
    for (const std::int64_t chunk : chunks) {
      for (const std::int64_t length : lengths) cases.push_back({deviation, chunk, length});
    }
  }
  const std::vector<MeanError> results =
      run_cases<MeanError>(run, cases, [&](const Case& c) -> TypedTrial<MeanError> {
        const std::int64_t sums = c.deviation > 0 ? repeats : 1;
        return {{{"part", "sums"},
                 {"unit", unit_of(c.chunk)},
                 {"deviation", c.deviation},
                 {"length", c.length},
                 {"repeats", sums},
                 {"seed", run.seed}},
                fmt::format("sums of {} in chunks of {}", c.length, c.chunk),
                [=, seed = run.seed] {
                  return measured_sums(unit_of(c.chunk), c.deviation, c.length, sums, seed);
                }};
      });
  ResultTable table{"Sums in a 1-6-9 register over exact sums, to nearest",
                    {"numbers", "chunk", "length", "predicted", "measured"},
                    {}};
  Chart chart{
      .title = "Sums in a 1-6-9 register by length and chunk",
      .caption = fmt::format(
          "Uniform numbers of mean and deviation 1, to nearest after each addition, mean of "
          "{} sums; dashed: the walk over binades. A chunk of 1 adds one by one and stalls "
          "at 4,096.",
          repeats),
      .x = "numbers added",
      .y = "sum over exact sum",
      .log_x = true};
  const std::shared_ptr<const Density> uniform =
      uniform_density(1 - std::sqrt(3.0), 1 + std::sqrt(3.0));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const auto length = static_cast<double>(c.length);
    const AddedAt added = c.deviation > 0 ? added_by(uniform, 1) : added_by(1);
    const double predicted =
        (c.chunk == 1 ? expected_sum(added, 1, length, kMantissa)
                      : expected_chunked_sum(added, 1, c.deviation, length,
                                             static_cast<double>(c.chunk), kMantissa)) /
        length;
    const auto [measured, error] = results[i];
    const std::string numbers = c.deviation > 0 ? "uniform" : "ones";
    const std::string what =
        fmt::format("sum of {} {} in chunks of {}, over the exact sum", c.length, numbers, c.chunk);
    if (c.deviation > 0) {
      conclusion.add(model_finding(what, predicted, measured, error, kSumHolds * predicted),
                     "sums");
      chart.add(fmt::format("chunk {}", c.chunk), with_error({.x = length, .y = measured}, error),
                {.x = length, .y = predicted});
    } else {
      conclusion.add(exact_finding(what, predicted, measured, measured == predicted), "stall");
    }
    table.rows.push_back({numbers, fmt::format("{}", c.chunk), fmt::format("{}", c.length),
                          fmt::format("{:.4f}", predicted), fmt::format("{:.4f}", measured)});
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::hfp8
