#include "experiments/lognormal_gradients/splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "experiments/engine/trials.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::lognormal_gradients {

namespace {

constexpr double kLn2 = std::numbers::ln2;
constexpr double kLeastSigma = 0.1, kMostSigma = 25;

}  // namespace

std::string Split::name() const { return fmt::format("1-{}-{}", exponent, mantissa); }

std::string Split::format() const { return fmt::format("e{}m{}+finite", exponent, mantissa); }

std::vector<Split> splits_of(int bits) {
  std::vector<Split> splits;
  for (int e = 1; e < bits; ++e) splits.push_back({e, bits - 1 - e});
  return splits;
}

double idealised_error(const Split& split, double sigma, double mean) {
  const double end = std::ldexp(1, split.exponent - 1), s = sigma * kLn2;
  const double below = (-end - mean) / sigma, above = (end - mean) / sigma;
  const double rounding = std::ldexp(1, -split.mantissa) / (8 * kLn2);
  // P(above) - 2^(end - mean) exp(s^2 / 2) Phi(-t), t = above + s: the product is
  // exp(-above^2 / 2) exp(t^2 / 2) Phi(-t), which does not overflow.
  const double t = above + s;
  const double kept =
      t >= 0 ? portable::exp(-above * above / 2) * normal::scaled_erfc(t / std::numbers::sqrt2) / 2
             : portable::exp(above * s + s * s / 2) * normal::cdf(-t);
  return normal::between(below, above) * rounding + normal::cdf(below) + normal::cdf(-above) - kept;
}

double idealised_error_of(const Split& split, double x) {
  const double end = portable::exp2(std::ldexp(1, split.exponent - 1));
  if (x < 1 / end) return 1;
  if (x >= end) return (x - end) / x;
  const double ulp = std::ldexp(1, std::ilogb(x) - split.mantissa);
  return std::fabs(std::nearbyint(x / ulp) * ulp - x) / x;
}

FormatGrid::FormatGrid(const Format& format) : FormatGrid(cells(format, {}, false)) {}

FormatGrid::FormatGrid(const std::vector<Cell>& all) {
  for (const Cell& cell : all) {
    if (cell.high > 0) cells_.push_back(cell);
  }
  const auto positive =
      std::find_if(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.value > 0; });
  lowest_ = portable::log2(positive->value);
  highest_ = portable::log2(cells_.back().value);
}

double FormatGrid::expected(double sigma, double mean) const {
  const double s = sigma * kLn2, m = mean * kLn2;
  const auto z = [&](double x) {
    return x > 0 ? (portable::log(x) - m) / s : -std::numeric_limits<double>::infinity();
  };
  double sum = 0;
  for (const Cell& cell : cells_) {
    const double low = z(std::fmax(cell.low, 0)), high = z(cell.high);
    if (!(cell.value > 0)) {
      sum += normal::between(low, high);
      continue;
    }
    // v / x - 1 below the value v, 1 - v / x above it; E[1 / x] shifts the law by -s.
    const double at = z(cell.value), v = portable::exp(portable::log(cell.value) - m + s * s / 2);
    sum += v * normal::between(low + s, at + s) - normal::between(low, at);
    sum += normal::between(at, high) - v * normal::between(at + s, high + s);
  }
  return sum;
}

double FormatGrid::error_of(double x) const {
  const auto above = std::upper_bound(cells_.begin(), cells_.end(), x,
                                      [](double y, const Cell& cell) { return y < cell.low; });
  const Cell& cell = above == cells_.begin() ? cells_.front() : *(above - 1);
  return std::fabs(x - cell.value) / x;
}

double FormatGrid::best_mean(double sigma) const {
  constexpr double kStep = 0.25;
  constexpr int kCoarse = 32;  // means over the range, before neighbours are tried
  const double stride = kStep * std::ceil((highest_ - lowest_) / (kStep * kCoarse));
  double best = 0, least = std::numeric_limits<double>::infinity();
  const auto attempt = [&](double mean) {
    const double error = expected(sigma, mean);
    if (error < least) {
      least = error;
      best = mean;
    }
  };
  for (double mean = kStep * std::floor(lowest_ / kStep); mean <= highest_; mean += stride)
    attempt(mean);
  const double middle = best;
  for (double mean = middle - stride; mean <= middle + stride; mean += kStep) attempt(mean);
  return best;
}

Split best_split(int bits, double sigma, const ErrorOf& error) {
  const std::vector<Split> splits = splits_of(bits);
  std::size_t best = 0;
  std::vector<double> errors;
  for (const Split& split : splits) {
    errors.push_back(error(split, sigma));
    if (errors.back() < errors[best]) best = errors.size() - 1;
  }
  return splits[best];
}

std::vector<Switch> switches(int bits, const ErrorOf& error) {
  constexpr double kStep = 1.02;  // two switches are further apart
  constexpr int kHalvings = 30;
  std::vector<Switch> all;
  double before = kLeastSigma;
  Split split = best_split(bits, before, error);
  for (double sigma = before; sigma <= kMostSigma; before = sigma, sigma *= kStep) {
    const Split next = best_split(bits, sigma, error);
    if (next.exponent == split.exponent) continue;
    double low = before, high = sigma;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (error(next, middle) < error(split, middle) ? high : low) = middle;
    }
    all.push_back({(low + high) / 2, split, next});
    split = next;
  }
  return all;
}

// Lognormal numbers: expected relative errors against draws, best splits, the published margin.

namespace {

/// Relative, of the idealised closed form: its rounding term is 0.4 % above that of numbers with a
/// log-uniform mantissa at two mantissa bits, 1.7 % at one, 6.1 % at none.
constexpr double kIdealHolds = 0.02;

/// A split under a law after scaling.
struct Case {
  Split split;
  double sigma, mean;
  std::string name() const {
    return fmt::format("{} at sigma {}, mean {}", split.name(), sigma, mean);
  }
};

/// Mean relative errors.
struct Drawn {
  MeanError idealised, grid;

  static void fields(auto& self, const auto& visit) {
    visit("idealised", self.idealised);
    visit("grid", self.grid);
  }
};

/// As the codec rounds, not as the cells that predict it.
Drawn measure(const Case& c, std::int64_t samples, std::uint64_t seed) {
  const Distribution law = Distribution::parse(fmt::format("lognormal:{}:log2", c.sigma), true);
  const double shift = portable::exp2(c.mean);
  const RandomSource random{seed, Stream::data, tensor_word(c.name()), 0};
  const Conversion conversion{.format = &find_format(c.split.format())};
  RunningMean ideal, real;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto x = static_cast<float>(shift * law.draw(random, static_cast<std::uint64_t>(i)));
    float y = 0;
    quantize_values(conversion, &x, 1, 1, &y);
    ideal.add(idealised_error_of(c.split, x));
    real.add(std::fabs(double{x} - y) / x);
  }
  return {ideal.mean(), real.mean()};
}

std::vector<Drawn> measure_all(const ExperimentRun& run, const std::vector<Case>& cases) {
  const std::int64_t samples = run.settings.integer("samples");
  return run_cases<Drawn>(
      run, cases,
      [&](const Case& c) -> TypedTrial<Drawn> {
        return {{{"part", "draws"},
                 {"format", c.split.format()},
                 {"sigma", c.sigma},
                 {"mean", c.mean},
                 {"samples", samples},
                 {"measured", "codec"},
                 {"seed", run.seed}},
                c.name(),
                [=, seed = run.seed] { return measure(c, samples, seed); }};
      },
      true);
}

void judge_draws(const ExperimentRun& run, Conclusion& conclusion) {
  std::vector<Case> cases;
  for (const int bits : widths_of(run.settings, "draw_widths")) {
    for (const Split& split : splits_of(bits)) {
      for (const double sigma : run.settings.numbers("sigmas")) {
        for (const double mean : run.settings.numbers("means"))
          cases.push_back({split, sigma, mean});
      }
    }
  }
  const std::vector<Drawn> results = measure_all(run, cases);
  ResultTable table{"Expected relative error of lognormal numbers: predicted | measured",
                    {"split", "sigma, base 2", "mean, base 2", "idealised format", "grid"},
                    {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const double ideal = idealised_error(c.split, c.sigma, c.mean);
    const double real = FormatGrid(find_format(c.split.format())).expected(c.sigma, c.mean);
    const auto& [of_ideal, of_grid] = results[i];
    conclusion.add(
        closed_form("relative error on the grid, " + c.name(), real, of_grid.mean, of_grid.error),
        "grid");
    conclusion.add(model_finding("relative error of the idealised format, " + c.name(), ideal,
                                 of_ideal.mean, of_ideal.error, kIdealHolds * ideal),
                   c.split.mantissa > 1 ? "idealised" : "few mantissa bits");
    table.rows.push_back({c.split.name(), fmt::format("{}", c.sigma), fmt::format("{}", c.mean),
                          fmt::format("{:.5f} | {:.5f}", ideal, of_ideal.mean),
                          fmt::format("{:.5f} | {:.5f}", real, of_grid.mean)});
  }
  conclusion.tables.push_back(std::move(table));
}

/// Where the program of the authors changes the split, by bits (find_opt_exp_bits).
std::vector<double> published_switches(int bits) {
  switch (bits) {
    case 3:
      return {.7};
    case 4:
      return {.5, 1.2};
    case 5:
      return {.2, 1, 2.4};
    case 6:
      return {.3, .9, 2, 4.9};
    case 7:
      return {.3, .7, 1.7, 4, 9.4};
    default:
      return {.1, .6, 1.4, 3.7, 8.1, 19.3};
  }
}

std::string text_of(const std::vector<Switch>& all) {
  std::string text;
  for (const Switch& s : all) {
    text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ",
                        s.to.exponent == s.from.exponent + 1
                            ? fmt::format("{}:", s.to.name())
                            : fmt::format("{} to {}:", s.from.name(), s.to.name()),
                        s.sigma);
  }
  return text;
}

void judge_switches(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr double kPrinted = 0.05, kNearShare = 0.08;  // one decimal is published
  ResultTable table{
      "Splits of least relative error at mean 0: sigma (base 2) from which each is the best",
      {"bits", "idealised format, closed form", "grid, closed form", "authors' program"},
      {}};
  for (const int bits : widths_of(run.settings, "widths")) {
    const std::vector<Switch> ideal = switches(
        bits, [](const Split& split, double sigma) { return idealised_error(split, sigma, 0); });
    std::vector<FormatGrid> grids;
    for (const Split& split : splits_of(bits)) grids.emplace_back(find_format(split.format()));
    const std::vector<Switch> real = switches(bits, [&](const Split& split, double sigma) {
      return grids[split.exponent - 1].expected(sigma, 0);
    });
    const std::vector<double> published = published_switches(bits);
    std::string authors;
    for (std::size_t i = 0; i < published.size(); ++i) {
      authors += fmt::format("{}{}", i == 0 ? "" : ", ", published[i]);
      if (i >= ideal.size()) continue;
      const double at = ideal[i].sigma, tolerance = kPrinted + kNearShare * at;
      conclusion.add(
          exact_finding(fmt::format("sigma at which {} bits change from {} to {}, authors' program",
                                    bits, ideal[i].from.name(), ideal[i].to.name()),
                        at, published[i], std::fabs(published[i] - at) <= tolerance,
                        near(at, tolerance)),
          "switches");
    }
    table.rows.push_back({fmt::format("{}", bits), text_of(ideal), text_of(real), authors});
  }
  conclusion.tables.push_back(std::move(table));
}

/// What a margin of 3 does to the criterion that the split was chosen by.
void judge_margin(const ExperimentRun& run, Conclusion& conclusion) {
  ResultTable table{
      "Expected relative error by the mean of log2|x| after scaling, best split of "
      "the idealised format",
      {"bits", "sigma", "split", "mean -3 (published)", "mean 0", "grid, mean -3", "grid, mean 0",
       "grid, best mean"},
      {}};
  double worst = 1;
  for (const int bits : widths_of(run.settings, "widths")) {
    for (const double sigma : {2.0, 3.0, 5.0}) {
      const Split split = best_split(bits, sigma, [](const Split& candidate, double s) {
        return idealised_error(candidate, s, 0);
      });
      const double published = idealised_error(split, sigma, -kPublishedMargin),
                   centred = idealised_error(split, sigma, 0);
      const FormatGrid grid(find_format(split.format()));
      const double mean = grid.best_mean(sigma);
      worst = std::fmax(worst, published / centred);
      conclusion.add(exact_finding(fmt::format("relative error of {} at sigma {}, margin 3 over "
                                               "margin 0 (at most 1 claimed)",
                                               split.name(), sigma),
                                   1, published / centred, published <= centred, at_most(1)),
                     "published margin");
      table.rows.push_back({fmt::format("{}", bits), fmt::format("{}", sigma), split.name(),
                            fmt::format("{:.4f}", published), fmt::format("{:.4f}", centred),
                            fmt::format("{:.4f}", grid.expected(sigma, -kPublishedMargin)),
                            fmt::format("{:.4f}", grid.expected(sigma, 0)),
                            fmt::format("{:.4f} at {:+}", grid.expected(sigma, mean), mean)});
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.sentences.push_back(
      fmt::format("Known laws: the published margin of 3 binades multiplies the expected relative "
                  "error of the best split by up to {:.2f}.",
                  worst));
}

/// Errors of one split over the mean, drawn and predicted.
void chart_means(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr Split kSplit{3, 2};
  constexpr double kSigma = 3;
  std::vector<Case> cases;
  for (int mean = -4; mean <= 6; ++mean) cases.push_back({kSplit, kSigma, double(mean)});
  const std::vector<Drawn> results = measure_all(run, cases);
  const FormatGrid grid(find_format(kSplit.format()));
  Chart chart{
      .title = fmt::format("Relative error of {} over the mean after scaling", kSplit.name()),
      .caption = fmt::format(
          "log2|x| normal with deviation {}; to nearest, saturating; closed forms dashed. The "
          "published margin puts the mean at -3, where the error is more than twice the least.",
          kSigma),
      .x = "mean of log2|x| after scaling",
      .y = "expected relative error"};
  for (const bool ideal : {true, false}) {
    const std::string name = ideal ? "idealised" : "grid";
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto [value, error] = ideal ? results[i].idealised : results[i].grid;
      chart.of(name + " measured")
          .points.push_back(with_error({.x = cases[i].mean, .y = value}, error));
    }
    for (double mean = -4; mean <= 6; mean += 0.25) {
      chart.of(name + " predicted", true)
          .points.push_back(
              {.x = mean,
               .y = ideal ? idealised_error(kSplit, kSigma, mean) : grid.expected(kSigma, mean)});
    }
  }
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace

void add_draws(const ExperimentRun& run, Conclusion& conclusion) {
  judge_draws(run, conclusion);
  judge_switches(run, conclusion);
  judge_margin(run, conclusion);
  chart_means(run, conclusion);
}

}  // namespace numemu::experiments::lognormal_gradients
