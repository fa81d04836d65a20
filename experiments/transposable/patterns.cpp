#include "experiments/transposable/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/stats/laws.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/calibrate/adaprune.hpp"
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

LayerErrors::LayerErrors(const std::vector<std::string>& layers) {
  for (const std::string& layer : layers) squares_[layer];
}

void LayerErrors::product(const net::Step& step, const net::Product& p) {
  net::Numerics::product(step, p);
  const auto found = squares_.find(p.layer);
  if (found == squares_.end() || p.b.role != net::Role::weight) return;
  const std::int64_t parts = p.b.stack.count(), inner = p.d_stack.inner;
  if (found->second.empty())
    found->second.assign(static_cast<std::size_t>(parts), policies::LeastSquares(p.k, p.n));
  std::vector<float> y(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    const float* const d = p.d + (i / inner * p.m * inner + i % inner) * p.n;
    for (std::int64_t r = 0; r < p.m; ++r)
      std::copy_n(d + r * inner * p.n, p.n, y.data() + r * p.n);
    found->second[static_cast<std::size_t>(parts == 1 ? 0 : i)].add(p, i, y.data());
  }
}

double LayerErrors::relative(const std::string& layer, const net::Tensor& weight) const {
  const auto found = squares_.find(layer);
  if (found == squares_.end() || found->second.empty())
    throw Error("layer " + layer + ": expected a product of its weight, found none");
  const std::vector<policies::LeastSquares>& parts = found->second;
  const std::int64_t each = weight.size() / static_cast<std::int64_t>(parts.size());
  const std::vector<float> none(static_cast<std::size_t>(each));
  double error = 0, power = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    error += parts[i].squared_error(weight.data.data() + static_cast<std::int64_t>(i) * each);
    power += parts[i].squared_error(none.data());
  }
  return error / power;
}

namespace {

/// The float32 side that all variants share.
struct Seen {
  std::vector<std::string> layers;
  LayerErrors outputs;          ///< on test images
  LayerErrors fitted;           ///< on calibration images
  policies::AdaPrune adaprune;  ///< on calibration images
};

constexpr std::int64_t kAtOnce = 64;  // images in memory

Seen see(const net::Graph& graph, const net::Dataset& data, std::int64_t images,
         std::int64_t calibration) {
  const std::vector<std::string> layers = even_layers(graph);
  Seen seen{layers, LayerErrors(layers), LayerErrors(layers),
            policies::AdaPrune(std::set<std::string, std::less<>>(layers.begin(), layers.end()))};
  for (std::int64_t first = 0; first < images; first += kAtOnce) {
    net::Targets targets;
    net::forward(graph, data.test_batch(first, std::min(kAtOnce, images - first), targets),
                 seen.outputs);
  }
  for (std::int64_t first = 0; first < calibration; first += kAtOnce) {
    const std::vector<net::Tensor> batch =
        calibration_of(data)(first, std::min(kAtOnce, calibration - first));
    net::forward(graph, batch, seen.fitted);
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
    result.outputs.emplace_back(layer, seen.outputs.relative(layer, under.weight));
    result.fitted.emplace_back(layer, seen.fitted.relative(layer, under.weight));
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

}  // namespace numemu::experiments
