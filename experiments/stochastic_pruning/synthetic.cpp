// Closed forms against samples of known laws, and the normal law where it does not hold.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "experiments/engine/judge.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/stochastic_pruning/methods.hpp"
#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::stochastic_pruning {
namespace {

/// Numbers of a law, the share `zero` of them zero in between.
struct Source {
  const char* name;
  const char* law;  ///< of Distribution
  double zero;
  MagnitudeLaw truth;  ///< what it is; not usable: none of the laws that have closed forms here
};

const std::vector<Source>& sources() {
  static const std::vector<Source> all = {
      {"normal", "normal", 0, {ThresholdLaw::normal, 1, 0, 1}},
      {"lognormal s = 0.5", "lognormal:0.5", 0, {ThresholdLaw::lognormal, 1, 0.5, 1}},
      {"lognormal s = 1", "lognormal:1", 0, {ThresholdLaw::lognormal, 1, 1, 1}},
      {"lognormal s = 2", "lognormal:2", 0, {ThresholdLaw::lognormal, 1, 2, 1}},
      {"Laplace", "laplace", 0, {}},
      {"normal, half of it zero", "normal", 0.5, {ThresholdLaw::normal, 1, 0, 0.5}}};
  return all;
}

/// The sum of squares of a lognormal law rests on its largest values: where s is beyond this, its
/// cosine has no standard error to speak of.
constexpr double kTamest = 1;
/// Parts of a sample whose spread gives the standard errors.
constexpr std::int64_t kParts = 64;

std::vector<float> draw(const Source& source, std::uint64_t seed, std::int64_t first,
                        std::int64_t n) {
  const Distribution law = Distribution::parse(source.law, false);
  const RandomSource random{seed, Stream::vectors, 0, 0};
  std::vector<float> x(static_cast<std::size_t>(n));
  const auto every = source.zero > 0 ? static_cast<std::int64_t>(1 / source.zero) : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (every == 0 || (first + i) % every != 0)
      x[i] = static_cast<float>(law.draw(random, static_cast<std::uint64_t>(first + i)));
  }
  return x;
}

struct Spread {
  double sum = 0, squares = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
  }
  Estimate estimate() const {
    const double mean = sum / kParts;
    const double variance = std::max(squares / kParts - mean * mean, 0.0) / (kParts - 1);
    return {mean, std::sqrt(variance)};
  }
};

/// Shares, added variance per element and cosine over the parts of a sample.
struct MeasuredLaw {
  Estimate below, zeros, error, cosine;
  static void fields(auto& self, const auto& visit) {
    visit("below", self.below);
    visit("zeros", self.zeros);
    visit("error", self.error);
    visit("cosine", self.cosine);
  }
};

MeasuredLaw measure(const Source& source, Pruning pruning, double threshold, std::uint64_t seed,
                    std::int64_t samples) {
  const std::int64_t n = samples / kParts;
  Spread below, zeros, error, cosine;
  for (std::int64_t part = 0; part < kParts; ++part) {
    const std::vector<float> x = draw(source, seed, part * n, n);
    const RandomSource random{seed, Stream::mask, static_cast<std::uint32_t>(part), 0};
    const PrunedTensor t = prune_and_measure(pruning, x.data(), n, threshold, random);
    const auto count = static_cast<double>(n);
    below.add(static_cast<double>(t.below) / count);
    zeros.add(t.zero_share());
    error.add(t.error / count);
    cosine.add(t.cosine());
  }
  return {below.estimate(), zeros.estimate(), error.estimate(), cosine.estimate()};
}

struct Case {
  const Source* source;
  Pruning pruning;
  double share;
  MagnitudeLaw law;  ///< that the threshold is computed under, by its true parameters
  double threshold() const { return threshold_below(law, share); }
};

/// Every law with itself, and the normal law from the mean magnitude over everything on all others.
std::vector<Case> cases_of(const std::vector<double>& shares) {
  // E|g| over all elements.
  const auto mean = [](const Source& source) {
    const double s = source.truth.spread;
    if (!source.truth.usable()) return 1.0;  // Laplace of scale 1
    return (1 - source.zero) * (source.truth.law == ThresholdLaw::normal
                                    ? std::sqrt(2 / M_PI)
                                    : portable::exp(s * s / 2));
  };
  std::vector<Case> cases;
  for (const Source& source : sources()) {
    for (const double share : shares) {
      for (const Pruning pruning : {Pruning::stochastic, Pruning::hard}) {
        if (source.truth.usable()) cases.push_back({&source, pruning, share, source.truth});
      }
      if (source.law != std::string("normal") || source.zero > 0) {
        const MagnitudeLaw naive{ThresholdLaw::normal, std::sqrt(M_PI / 2) * mean(source), 0, 1};
        cases.push_back({&source, Pruning::stochastic, share, naive});
      }
    }
  }
  return cases;
}

bool is_own(const Case& c) {
  return c.law.law == c.source->truth.law && c.law.nonzero == c.source->truth.nonzero &&
         c.source->truth.usable();
}

std::string label_of(const Case& c) {
  return fmt::format("{}, {} pruning at p = {}{}", c.source->name,
                     c.pruning == Pruning::hard ? "hard" : "stochastic", c.share,
                     is_own(c) ? "" : ", threshold of a normal law");
}

TypedTrial<MeasuredLaw> trial_of(const Case& c, std::uint64_t seed, std::int64_t samples) {
  return {
      {{"part", "synthetic"},
       {"law", c.source->law},
       {"zero", c.source->zero},
       {"pruning", c.pruning == Pruning::hard ? "hard" : "stochastic"},
       {"threshold", c.threshold()},
       {"samples", samples},
       {"seed", seed}},
      label_of(c),
      [c, seed, samples] { return measure(*c.source, c.pruning, c.threshold(), seed, samples); }};
}

/// The densities, or the cosines, over p: stochastic pruning of every law that has a closed form.
Chart chart_over(const char* title, const char* y, double PruningEffect::*predicted,
                 double (*measured)(const MeasuredLaw&), double (*error)(const MeasuredLaw&),
                 const std::vector<Case>& cases, const std::vector<MeasuredLaw>& results,
                 std::int64_t samples) {
  Chart chart{.title = title,
              .caption = fmt::format("Stochastic pruning of {} numbers of each law, thresholds "
                                     "under the law itself; closed forms dashed, 95 % intervals.",
                                     samples),
              .x = "p, share of the non-zero elements below the threshold",
              .y = y};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (!is_own(c) || c.pruning != Pruning::stochastic) continue;
    chart.add(c.source->name,
              with_error({.x = c.share, .y = measured(results[i])}, error(results[i])),
              {.x = c.share, .y = effect(c.pruning, c.law, c.threshold()).*predicted});
  }
  for (ChartSeries& series : chart.series) std::ranges::sort(series.points, {}, &ChartPoint::x);
  return chart;
}

std::string with_text(const Estimate& e) {
  return fmt::format("{:.4f} ± {:.4f}", e.value, e.error);
}

}  // namespace

void add_synthetic(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t samples = run.settings.integer("samples");
  const std::vector<Case> cases = cases_of(run.settings.numbers("shares"));
  std::vector<TypedTrial<MeasuredLaw>> trials;
  for (const Case& c : cases) trials.push_back(trial_of(c, run.seed, samples));
  const std::vector<MeasuredLaw> results = run_typed(run, trials);

  ResultTable table{
      "Known laws: predicted | measured ± standard error",
      {"law", "pruning", "p", "threshold", "below", "zeros", "added variance", "cosine"},
      {}};
  std::size_t held = 0, own = 0;
  double furthest = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const PruningEffect predicted = effect(c.pruning, c.law, c.threshold());
    const double squares = second_moment(c.law), below = c.law.nonzero * predicted.below;
    const MeasuredLaw& m = results[i];
    const std::string label = label_of(c);
    const auto add = [&](const char* what, double expected, const Estimate& e) {
      conclusion.add(closed_form(what + label, expected, e.value, e.error),
                     is_own(c) ? "laws" : "other laws");
      held += is_own(c) && std::fabs(e.value - expected) <= kErrors * e.error;
      own += is_own(c);
    };
    add("zeros: ", predicted.zeros, m.zeros);
    add("added variance: ", predicted.error * squares, m.error);
    if (!(c.source->truth.spread > kTamest)) add("cosine: ", predicted.cosine, m.cosine);
    if (!is_own(c)) furthest = std::max(furthest, std::fabs(predicted.zeros - m.zeros.value));
    table.rows.push_back({c.source->name,
                          fmt::format("{}{}", c.pruning == Pruning::hard ? "hard" : "stochastic",
                                      is_own(c) ? "" : ", as if normal"),
                          fmt::format("{}", c.share), fmt::format("{:.4f}", c.threshold()),
                          fmt::format("{:.4f} | {}", below, with_text(m.below)),
                          fmt::format("{:.4f} | {}", predicted.zeros, with_text(m.zeros)),
                          fmt::format("{:.4g} | {:.4g}", predicted.error * squares, m.error.value),
                          fmt::format("{:.4f} | {}", predicted.cosine, with_text(m.cosine))});
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(chart_over(
      "Density after pruning by p", "elements that are not zero, share", &PruningEffect::density,
      [](const MeasuredLaw& m) { return 1 - m.zeros.value; },
      [](const MeasuredLaw& m) { return m.zeros.error; }, cases, results, samples));
  conclusion.charts.push_back(chart_over(
      "Cosine of a gradient and what pruning leaves of it, by p", "cosine", &PruningEffect::cosine,
      [](const MeasuredLaw& m) { return m.cosine.value; },
      [](const MeasuredLaw& m) { return m.cosine.error; }, cases, results, samples));
  conclusion.sentences.push_back(fmt::format(
      "Known laws: {} of {} closed forms lie within {:.0f} standard errors of {} numbers each; a "
      "normal threshold on another law, or with structural zeros in its mean, misses the share of "
      "zeros by up to {:.2f}.",
      held, own, kErrors, samples, furthest));
}

}  // namespace numemu::experiments::stochastic_pruning
