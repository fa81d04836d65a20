#include "experiments/transposable/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/calibrate/adaprune.hpp"
#include "policies/calibrate/least_squares.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/rules/transposable.hpp"
#include "policies/mask/rules/transposable_greedy.hpp"
#include "policies/mask/weight_mask.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

const std::vector<HalfPattern>& half_patterns() {
  // 4:8-T and 2:4-T have no closed form: measured by another program on large samples, to the four
  // digits that it prints.
  static const std::vector<HalfPattern> patterns = {
      {"unstructured", "unstructured(0.5)", false, group_loss(32, 64)},
      {"4:8", "greedy(4:8,remainder=pad)", true, group_loss(4, 8)},
      {"2:4", "greedy(2:4,remainder=pad)", true, group_loss(2, 4)},
      {"4:8-T", "transposable(4:8,remainder=pad)", true, 0.2572, 0.0001},
      {"1:2", "greedy(1:2,remainder=pad)", true, group_loss(1, 2)},
      {"2:4-T", "transposable(2:4,remainder=pad)", true, 0.2976, 0.0001},
      {"1:2-T", "transposable(1:2,remainder=pad)", true, diagonal_loss()}};
  return patterns;
}

const HalfPattern& half_pattern(std::string_view name) {
  std::string known;
  for (const HalfPattern& pattern : half_patterns()) {
    if (pattern.name == name) return pattern;
    known += (known.empty() ? "" : ", ") + pattern.name;
  }
  throw usage_error(fmt::format("--set: patterns: expected one of {}, not '{}'", known, name));
}

namespace {

using stats::binomial_probability;

constexpr double kPi = 3.14159265358979323846;

/// Mean of |x| of a standard normal x.
double mean_magnitude() { return std::sqrt(2 / kPi); }

/// Simpson's rule over what matters of a normal law's half.
template <class Term>
double integral(Term&& term) {
  constexpr int kSteps = 4000;
  constexpr double kEnd = 10, kStep = kEnd / kSteps;
  double sum = term(0.0) + term(kEnd);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 0 ? 2 : 4) * term(i * kStep);
  return sum * kStep / 3;
}

}  // namespace

double group_loss(int kept, int group) {
  // An element is pruned if fewer than group - kept of the others are smaller.
  const double lost = integral([&](double x) {
    const double smaller = portable::erf(x / std::sqrt(2.0));
    double chance = 0;
    for (int i = 0; i < group - kept; ++i) chance += binomial_probability(group - 1, i, smaller);
    return x * std::sqrt(2 / kPi) * portable::exp(-x * x / 2) * chance;
  });
  return lost / mean_magnitude();
}

double half_loss() {
  const double q = normal::quantile(0.75);
  return 1 - portable::exp(-q * q / 2);
}

double diagonal_loss() {
  const double larger = integral([](double s) {
    const double both = portable::erf(s / 2);
    return 1 - both * both * both * both;
  });
  return 1 - larger / (4 * mean_magnitude());
}

double violation_share(int kept, int group, double zeros) {
  double sum = 0;
  for (int i = kept + 1; i <= group; ++i) sum += binomial_probability(group, i, 1 - zeros);
  return sum;
}

double extra_share(int kept, int group, double zeros) {
  double sum = 0;
  for (int i = kept + 1; i <= group; ++i)
    sum += (i - kept) * binomial_probability(group, i, 1 - zeros);
  return sum / group;
}

std::vector<std::string> even_layers(const net::Graph& graph) {
  std::vector<std::string> names;
  for (const net::GemmLayer& layer : net::gemm_layers(graph))
    if (layer.weight != nullptr && layer.weight->shape.size() > 1 &&
        layer.weight->dim(-1) % kMostGroup == 0)
      names.push_back(layer.name);
  if (names.empty())
    throw Error("network " + graph.name + ": expected a layer whose channels are a multiple of " +
                std::to_string(kMostGroup) + ", of which every pattern keeps half");
  return names;
}

namespace {

/// Inputs and outputs of layers' weight products in float32, by layer and matrix.
using LayerSquares = std::map<std::string, std::vector<policies::LeastSquares>, std::less<>>;

/// Sum of the squared errors of a layer's outputs with these weights [out, ..., in], over the sum
/// of the squared outputs.
double relative_error(const std::vector<policies::LeastSquares>& parts, const std::string& layer,
                      const net::Tensor& weight) {
  if (parts.empty())
    throw Error("layer " + layer + ": expected a product of its weight, found none");
  const std::int64_t each = weight.size() / static_cast<std::int64_t>(parts.size());
  const std::vector<float> none(static_cast<std::size_t>(each));
  double error = 0, power = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    error += parts[i].squared_error(weight.data.data() + static_cast<std::int64_t>(i) * each);
    power += parts[i].squared_error(none.data());
  }
  return error / power;
}

/// The float32 side that all variants share.
struct Seen {
  std::vector<std::string> layers;
  LayerSquares outputs;         ///< on test images
  LayerSquares fitted;          ///< on calibration images
  policies::AdaPrune adaprune;  ///< on calibration images
};

constexpr std::int64_t kAtOnce = 64;  // images in memory

Seen see(const net::Graph& graph, const net::Dataset& data, std::int64_t images,
         std::int64_t calibration) {
  const std::vector<std::string> layers = even_layers(graph);
  Seen seen{layers,
            {},
            {},
            policies::AdaPrune(std::set<std::string, std::less<>>(layers.begin(), layers.end()))};
  for (const std::string& layer : layers) seen.outputs[layer] = seen.fitted[layer] = {};
  const auto collecting = [](LayerSquares& squares) {
    return net::Observing({.after = [&squares](const net::Step&, const net::Product& p) {
      const auto found = squares.find(p.layer);
      if (found != squares.end() && p.b.role == net::Role::weight)
        policies::collect(p, true, found->second);
    }});
  };
  net::Observing outputs = collecting(seen.outputs), fitted = collecting(seen.fitted);
  for (std::int64_t first = 0; first < images; first += kAtOnce) {
    net::Targets targets;
    net::forward(graph, data.test_batch(first, std::min(kAtOnce, images - first), targets),
                 outputs);
  }
  for (std::int64_t first = 0; first < calibration; first += kAtOnce) {
    const std::vector<net::Tensor> batch =
        calibration_of(data)(first, std::min(kAtOnce, calibration - first));
    net::forward(graph, batch, fitted);
    net::forward(graph, batch, seen.adaprune);
  }
  return seen;
}

/// A layer's weight under a variant, and which of it is kept.
struct Masked {
  net::Tensor weight;
  std::vector<std::uint8_t> keep;
};

Masked masked(const std::string& layer, const net::Tensor& weight, const std::string& text,
              std::uint64_t seed, const policies::AdaPrune& adaprune) {
  const policies::MaskPolicy policy = policies::parse_mask(text);
  const policies::WeightMask mask(policy, policies::weight_mask_random(seed, layer, policy));
  const std::int64_t matrices = adaprune.matrices(layer);
  Masked result{*mask.passing(weight, matrices), mask.mask_of(weight, matrices)};
  if (policy.repair == policies::Repair::adaprune)
    result.weight = adaprune.solve(layer, result.weight, result.keep);
  return result;
}

/// Without loss and answers.
PrunedNetwork shares(const net::Graph& graph, const Seen& seen, const std::string& mask,
                     std::uint64_t seed) {
  double elements = 0, kept = 0, magnitude = 0, pruned = 0;
  PrunedNetwork result;
  for (const std::string& layer : seen.layers) {
    const net::Tensor& weight = net::weight_of(graph, layer);
    const Masked under = mask.empty()
                             ? Masked{weight, std::vector<std::uint8_t>(weight.data.size(), 1)}
                             : masked(layer, weight, mask, seed, seen.adaprune);
    const auto sum = [&](bool all) {
      return pairwise_sum(weight.size(), [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return all || under.keep[at] == 0 ? std::fabs(double{weight.data[at]}) : 0.0;
      });
    };
    elements += static_cast<double>(weight.size());
    kept += static_cast<double>(std::count(under.keep.begin(), under.keep.end(), 1));
    magnitude += sum(true);
    pruned += sum(false);
    result.outputs.emplace_back(layer, relative_error(seen.outputs.at(layer), layer, under.weight));
    result.fitted.emplace_back(layer, relative_error(seen.fitted.at(layer), layer, under.weight));
  }
  result.kept = kept / elements;
  result.pruned = pruned / magnitude;
  return result;
}

}  // namespace

std::string Variant::mask() const {
  if (repair == "none") return pattern->mask;
  return pattern->mask.substr(0, pattern->mask.size() - 1) + ",repair=" + repair + ")";
}

std::vector<Variant> variants(const std::vector<std::string>& patterns) {
  std::vector<Variant> all;
  for (const std::string& name : patterns) {
    const HalfPattern& pattern = half_pattern(name);
    for (const char* repair : {"none", "absorb", "adaprune"})
      if (pattern.repairs || std::string(repair) == "none") all.push_back({&pattern, repair});
  }
  return all;
}

Json recipe_of(const std::vector<std::string>& layers, const std::string& mask,
               std::int64_t calibration) {
  Json recipe = {{"layers", Json::array()}, {"calibrate", {{"samples", calibration}}}};
  for (const std::string& layer : layers)
    if (!mask.empty())
      recipe["layers"].push_back({{"match", layer}, {"roles", {{"weight", {{"mask", mask}}}}}});
  return recipe;
}

std::vector<PrunedNetwork> prune_network(const net::Graph& graph, const net::Dataset& data,
                                         const std::vector<Variant>& all, std::int64_t images) {
  std::vector<std::string> masks = {""};
  for (const Variant& variant : all) masks.push_back(variant.mask());
  const std::int64_t tested = std::min(images, data.test_count()),
                     calibration = data.calibration_count();
  const Seen seen = see(graph, data, tested, calibration);
  std::vector<PrunedNetwork> results;
  for (const std::string& mask : masks) {
    const policies::Recipe recipe =
        policies::Recipe::make(recipe_of(seen.layers, mask, calibration), "transposable");
    policies::RecipeNumerics numerics(recipe, graph);
    freeze(numerics, graph, data);
    const net::Evaluation evaluation =
        net::evaluate(graph, data, net::Split::test, tested, numerics);
    PrunedNetwork& result = results.emplace_back(shares(graph, seen, mask, recipe.seed()));
    result.loss = evaluation.loss;
    result.right = answer_text(evaluation.right);
  }
  return results;
}
namespace {

using policies::TileMask;

constexpr std::int64_t kBlock = 64;  // elements; every pattern has whole groups and tiles in them
// Of a share of the sum of magnitudes: what 10^4 blocks must show.
constexpr double kLossHolds = 0.01;

std::vector<float> normal_block(const RandomSource& random, std::int64_t block) {
  std::vector<float> x(kBlock);
  for (std::int64_t i = 0; i < kBlock; ++i)
    x[static_cast<std::size_t>(i)] =
        static_cast<float>(normal::draw(random, static_cast<std::uint64_t>(block * kBlock + i)));
  return x;
}

/// Elements of one decision; the whole block where the rule looks at tensors.
std::int64_t piece_of(const policies::MaskPolicy& policy) {
  return policy.rule->span == policies::MaskSpan::tensor ? 1 : policies::decision_size(policy);
}

double pruned_magnitude(const policies::MaskPolicy& policy, const std::vector<float>& x) {
  std::vector<std::uint8_t> keep(x.size());
  policy.rule->prune(policy, {},
                     {.x = x.data(), .keep = keep.data(), .count = kBlock / piece_of(policy)});
  return pairwise_sum(kBlock, [&](std::int64_t i) {
    return keep[static_cast<std::size_t>(i)] != 0
               ? 0.0
               : std::fabs(double{x[static_cast<std::size_t>(i)]});
  });
}

/// Sum of `part` over sum of `whole`, with the standard error over blocks.
template <class Part>
Estimate share_of(const std::vector<double>& whole, Part&& part) {
  const auto n = static_cast<std::int64_t>(whole.size());
  const auto at = [&](std::int64_t b) { return whole[static_cast<std::size_t>(b)]; };
  const double total = pairwise_sum(n, at), share = pairwise_sum(n, part) / total;
  const double squares = pairwise_sum(n, [&](std::int64_t b) {
    const double rest = part(b) - share * at(b);
    return rest * rest;
  });
  return {share, std::sqrt(squares * static_cast<double>(n) / static_cast<double>(n - 1)) / total};
}

struct Losses {
  std::vector<Estimate> losses = {};  ///< by pattern
  std::vector<Estimate> steps = {};   ///< of each pattern from the one before, on the same blocks

  static void fields(auto& self, const auto& visit) {
    visit("losses", self.losses);
    visit("steps", self.steps);
  }
};

Losses measure_losses(std::int64_t blocks, std::uint64_t seed) {
  const RandomSource random{.seed = seed,
                            .stream = Stream::probe,
                            .tensor = tensor_word("transposable/losses"),
                            .draw = 0};
  std::vector<policies::MaskPolicy> policies;
  for (const HalfPattern& pattern : half_patterns())
    policies.push_back(policies::parse_mask(pattern.mask));
  std::vector<double> whole(static_cast<std::size_t>(blocks));
  std::vector<std::vector<double>> pruned(policies.size(), whole);
  net::for_each_row(blocks, 1000 * kBlock, [&](std::int64_t b) {
    const std::vector<float> x = normal_block(random, b);
    const auto block = static_cast<std::size_t>(b);
    whole[block] = pairwise_sum(
        kBlock, [&](std::int64_t i) { return std::fabs(double{x[static_cast<std::size_t>(i)]}); });
    for (std::size_t p = 0; p < policies.size(); ++p)
      pruned[p][block] = pruned_magnitude(policies[p], x);
  });
  Losses result;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const auto of = [&](std::size_t pattern, std::int64_t b) {
      return pruned[pattern][static_cast<std::size_t>(b)];
    };
    result.losses.push_back(share_of(whole, [&](std::int64_t b) { return of(p, b); }));
    if (p > 0)
      result.steps.push_back(
          share_of(whole, [&](std::int64_t b) { return of(p, b) - of(p - 1, b); }));
  }
  return result;
}

/// One greedy method on tiles of one size.
struct Nearness {
  double kept = 0, least_kept = 2;     ///< sum kept over the best sum: mean, least
  double pruned = 0, most_pruned = 0;  ///< sum pruned over the least sum: mean, most
  double count = 0;                    ///< mean of the elements kept of N M
  std::int64_t broken = 0;             ///< tiles that break the bound
  double same = 0;                     ///< share of tiles with the best mask

  static void fields(auto& self, const auto& visit) {
    visit("kept", self.kept);
    visit("least_kept", self.least_kept);
    visit("pruned", self.pruned);
    visit("most_pruned", self.most_pruned);
    visit("count", self.count);
    visit("broken", self.broken);
    visit("same", self.same);
  }
};

struct Method {
  const char* name;
  const char* bound;
  const char* claim;  ///< that the bound is about
  TileMask (*choose)(const float*, int, int);
  /// Whether the bound holds, of exact sums.
  bool (*within)(policies::Wide kept, policies::Wide best, policies::Wide total);
};

const Method kMethods[] = {
    {"heaviest first", "keeps at least 1/2 of the best", "greedy, heaviest first",
     policies::keep_heaviest,
     [](policies::Wide kept, policies::Wide best, policies::Wide) { return 2 * kept >= best; }},
    {"heaviest first, filled", "keeps at least 1/2 of the best", "greedy, heaviest first",
     policies::keep_heaviest_filled,
     [](policies::Wide kept, policies::Wide best, policies::Wide) { return 2 * kept >= best; }},
    {"lightest pruned first", "prunes at most 2 x the least", "greedy", policies::prune_lightest,
     [](policies::Wide kept, policies::Wide best, policies::Wide total) {
       return total - kept <= 2 * (total - best);
     }}};

Nearness measure_nearness(const Method& method, int size, std::int64_t blocks, std::uint64_t seed) {
  const RandomSource random{.seed = seed,
                            .stream = Stream::probe,
                            .tensor = tensor_word("transposable/losses"),
                            .draw = 0};
  const int elements = size * size, kept = size / 2;
  Nearness sum;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::vector<float> x = normal_block(random, b);
    for (const float* tile = x.data(); tile < x.data() + kBlock; tile += elements) {
      policies::Wide costs[kBlock], total = 0;
      policies::tile_costs(policies::tile_unit(tile, elements), tile, elements, costs);
      for (int i = 0; i < elements; ++i) total += costs[i];
      const TileMask best_mask = policies::exact_tile(tile, size, kept),
                     mask = method.choose(tile, size, kept);
      const policies::Wide best = policies::kept_sum(best_mask, costs),
                           got = policies::kept_sum(mask, costs);
      const auto ratio = [](policies::Wide a, policies::Wide c) {
        return static_cast<double>(a) / static_cast<double>(c);
      };
      sum.kept += ratio(got, best);
      sum.least_kept = std::min(sum.least_kept, ratio(got, best));
      sum.pruned += ratio(total - got, total - best);
      sum.most_pruned = std::max(sum.most_pruned, ratio(total - got, total - best));
      sum.count += policies::kept_count(mask);
      sum.broken += !method.within(got, best, total) || !policies::keeps_at_most(mask, kept);
      sum.same += mask == best_mask;
    }
  }
  const auto n = static_cast<double>(blocks * kBlock / elements);
  for (double* const mean : {&sum.kept, &sum.pruned, &sum.count, &sum.same}) *mean /= n;
  return sum;
}

void report_losses(const Losses& measured, std::int64_t blocks, Conclusion& conclusion) {
  const std::vector<HalfPattern>& patterns = half_patterns();
  ResultTable table{fmt::format("Share of the sum of magnitudes pruned, {} blocks of 8 x 8 normal "
                                "elements",
                                blocks),
                    {"pattern", "predicted", "from", "measured", "standard error"},
                    {}};
  Chart chart{.kind = Chart::Kind::bars,
              .title = "What patterns of density 50 % prune",
              .caption =
                  "Share of the sum of magnitudes of independent normal elements; masks of "
                  "largest sums, T: transposable. Predictions are closed forms but for "
                  "4:8-T and 2:4-T, which another program measured.",
              .x = "pattern",
              .y = "share of the sum of magnitudes pruned"};
  ChartSeries predicted{.name = "predicted", .predicted = true}, seen{.name = "measured"};
  Judged losses;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    const HalfPattern& pattern = patterns[p];
    const Estimate& loss = measured.losses[p];
    table.rows.push_back({pattern.name, fmt::format("{:.5f}", pattern.loss),
                          pattern.loss_error == 0 ? "closed form" : "earlier run",
                          fmt::format("{:.5f}", loss.value), fmt::format("{:.5f}", loss.error)});
    predicted.points.push_back({.name = pattern.name, .y = pattern.loss});
    seen.points.push_back(with_error({.name = pattern.name, .y = loss.value}, loss.error));
    losses.add("share of normal magnitudes that " + pattern.name + " prunes", pattern.loss,
               loss.value, portable::hypot(loss.error, pattern.loss_error),
               kLossHolds * pattern.loss);
  }
  chart.series = {predicted, seen};
  conclusion.charts.push_back(chart);
  conclusion.tables.push_back(table);
  conclusion.add(losses.findings(), "magnitude");
}

/// Each pattern against the one before it, on the same blocks: the claim is that it prunes more.
void report_order(const Losses& measured, Conclusion& conclusion) {
  const std::vector<HalfPattern>& patterns = half_patterns();
  std::vector<double> above, below;
  std::vector<Finding> steps;
  std::string names = patterns[0].name;
  for (std::size_t p = 1; p < patterns.size(); ++p) {
    const Estimate& step = measured.steps[p - 1];
    steps.push_back(
        unjudged(fmt::format("{} prunes more normal magnitude than {} (claimed above 0)",
                             patterns[p].name, patterns[p - 1].name),
                 patterns[p].loss - patterns[p - 1].loss, step.value, step.error));
    above.push_back(normal::cdf(-step.value / step.error));
    below.push_back(normal::cdf(step.value / step.error));
    names += " < " + patterns[p].name;
  }
  judge_signs(steps, above, below);
  VerdictCounts counts;
  for (const Finding& step : steps) counts.add(step.verdict);
  conclusion.add(std::move(steps), "order");
  conclusion.sentences.push_back(fmt::format(
      "Magnitude pruned of normal weights: {}, {} of {} steps confirmed; unstructured pruning of a "
      "whole tensor instead of 8 x 8 elements prunes {:.5f}.",
      names, counts.holds, counts.compared(), half_loss()));
}

}  // namespace

void add_losses(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t blocks = run.settings.integer("blocks");
  const std::uint64_t seed = run.seed;
  constexpr int kSizes[] = {4, 8};
  std::vector<Trial> trials = {
      untyped<Losses>({{{"part", "losses"}, {"blocks", blocks}, {"seed", seed}},
                       "normal blocks under every pattern",
                       [=] { return measure_losses(blocks, seed); }})};
  for (const int size : kSizes)
    for (const Method& method : kMethods)
      trials.push_back(
          untyped<Nearness>({{{"part", "greedy"},
                              {"method", method.name},
                              {"size", size},
                              {"blocks", blocks},
                              {"seed", seed}},
                             fmt::format("{} on {} x {}", method.name, size, size),
                             [=] { return measure_nearness(method, size, blocks, seed); }}));
  const std::vector<Json> results = run_trials(run, trials);
  const auto losses = measured<Losses>(results[0]);
  report_losses(losses, blocks, conclusion);
  report_order(losses, conclusion);

  ResultTable table{fmt::format("Greedy masks of normal tiles beside the best, {} blocks", blocks),
                    {"tile", "method", "kept / best", "least", "pruned / least", "most",
                     "elements kept", "the best mask itself"},
                    {}};
  std::size_t at = 1;
  for (const int size : kSizes)
    for (const Method& method : kMethods) {
      const auto row = measured<Nearness>(results[at++]);
      table.rows.push_back({fmt::format("{}:{}-T", size / 2, size), method.name,
                            fmt::format("{:.4f}", row.kept), fmt::format("{:.4f}", row.least_kept),
                            fmt::format("{:.4f}", row.pruned),
                            fmt::format("{:.4f}", row.most_pruned),
                            fmt::format("{:.3f} of {}", row.count, size * size / 2),
                            fmt::format("{:.1f} %", 100 * row.same)});
      conclusion.add(exact_finding(fmt::format("{}:{}-T, {}: tiles of {} that break the bound ({})",
                                               size / 2, size, method.name,
                                               blocks * kBlock / (size * size), method.bound),
                                   0, static_cast<double>(row.broken), row.broken == 0),
                     method.claim);
    }
  conclusion.tables.push_back(table);
}

}  // namespace numemu::experiments
