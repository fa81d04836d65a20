// Numbers of known laws, pruned: do means and variances equal the closed forms?
#include <fmt/format.h>

#include <optional>

#include "experiments/mvue/nsr.hpp"
#include "experiments/mvue/parts.hpp"
#include "experiments/mvue/pruned_sample.hpp"
#include "formats/analysis/distribution.hpp"

namespace numemu::experiments::mvue {
namespace {

struct Rule {
  PruneMethod method;
  unit::Sparsity pattern;
};

constexpr Rule kRules[] = {{PruneMethod::exact, {1, 2}},  {PruneMethod::exact, {2, 4}},
                           {PruneMethod::exact, {4, 8}},  {PruneMethod::approx, {2, 4}},
                           {PruneMethod::random, {2, 4}}, {PruneMethod::greedy, {1, 2}},
                           {PruneMethod::greedy, {2, 4}}};
constexpr const char* kLaws[] = {"normal", "laplace", "lognormal:0.5", "lognormal:1",
                                 "lognormal:2"};

std::string name_of(const Rule& rule) {
  return fmt::format("{}({}:{})", to_string(rule.method), rule.pattern.kept, rule.pattern.group);
}

RandomSource source(std::uint64_t seed, Stream stream, std::uint32_t tensor) {
  RandomSource random;
  random.seed = seed;
  random.stream = stream;
  random.tensor = tensor;
  return random;
}

void judge(const std::string& where, const Rule& rule, const Distribution& law,
           const std::optional<double>& nsr, const PrunedSample& s,
           std::vector<Finding>& findings) {
  if (nsr) findings.push_back(judged("noise-to-signal of " + where, *nsr, s.nsr, s.effective));
  if (rule.method == PruneMethod::greedy) {
    findings.push_back(judged("shrink factor of " + where, greedy_shrink(rule.pattern, law),
                              s.shrink, s.effective));
    return;
  }
  findings.push_back(
      judged("squared error over its closed form, " + where, 1, s.variance, s.effective_error));
  findings.push_back(
      judged("squared error of the mean times draws, " + where, 1, s.mean, s.effective_error));
}

}  // namespace

void add_laws(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr std::int64_t kMostSamples = 100'000'000, kMostDraws = 100'000;
  // Whole groups of every pattern.
  const std::int64_t n = run.settings.integer("samples", 800, kMostSamples) / 8 * 8;
  const std::int64_t draws = run.settings.integer("draws", 2, kMostDraws);
  ResultTable table{fmt::format("pruning {} numbers {} times", n, draws),
                    {"law", "rule", "NSR predicted", "NSR", "error / closed form",
                     "error of the mean x draws / closed form", "projection"},
                    {}};
  Chart chart;
  chart.kind = Chart::Kind::bars;
  chart.title = "Noise-to-signal ratio of pruned numbers";
  chart.caption = fmt::format(
      "Sum of squared errors over sum of squares, {} numbers of each law, with 95 % intervals "
      "over groups; predicted by closed forms and quadrature. Greedy has the least error and is "
      "the only one with bias.",
      n);
  chart.y = "NSR";
  chart.log_y = true;
  for (std::size_t l = 0; l < std::size(kLaws); ++l) {
    run.say(fmt::format("pruning {} numbers", kLaws[l]));
    const Distribution law = Distribution::parse(kLaws[l], false);
    const auto tensor = static_cast<std::uint32_t>(l);
    const RandomSource numbers = source(run.seed, Stream::data, tensor);
    std::vector<float> x(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = static_cast<float>(law.draw(numbers, static_cast<std::uint64_t>(i)));
    chart.series.push_back({fmt::format("{} measured", kLaws[l]), {}, false});
    chart.series.push_back({fmt::format("{} predicted", kLaws[l]), {}, true});
    for (const Rule& rule : kRules) {
      const policies::MaskPolicy policy = policies::parse_mask(name_of(rule));
      const PrunedSample s =
          prune_and_measure(policy, x, draws, source(run.seed, Stream::mask, tensor));
      const std::string where = fmt::format("{}, {}", name_of(rule), kLaws[l]);
      const std::optional<double> nsr = predicted_nsr(rule.method, rule.pattern, law);
      judge(where, rule, law, nsr, s, conclusion.findings);
      const bool biased = rule.method == PruneMethod::greedy;
      table.rows.push_back({kLaws[l], name_of(rule), nsr ? fmt::format("{:.4f}", *nsr) : "-",
                            shown(s.nsr), biased ? "-" : shown(s.variance),
                            biased ? "-" : shown(s.mean), shown(s.projection)});
      chart.series[2 * l].points.push_back(
          with_error({.name = name_of(rule), .y = s.nsr.value}, s.nsr.error));
      if (nsr) chart.series[2 * l + 1].points.push_back({.name = name_of(rule), .y = *nsr});
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::mvue
