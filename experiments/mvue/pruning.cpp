#include "experiments/mvue/pruning.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/study.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/mask/mvue_variance.hpp"

namespace numemu::experiments::mvue {

namespace {

/// What one group contributes.
struct GroupSums {
  double signal = 0, magnitude = 0;  ///< of x^2, |x|
  double error = 0, kept = 0;        ///< means over draws of |e|^2, |y|
  double closed = 0;                 ///< closed form of |e|^2
  double mean_error = 0;             ///< |mean e|^2
  double projected = 0;              ///< <mean e, x>
};

/// sum of a over sum of b, and the standard error from the spread of a - ratio b.
template <class A, class B>
Estimate ratio_of(const std::vector<GroupSums>& groups, double ratio, const A& a, const B& b) {
  const auto n = static_cast<std::int64_t>(groups.size());
  const double over = pairwise_sum(n, [&](std::int64_t i) { return a(groups[i]); });
  const double under = pairwise_sum(n, [&](std::int64_t i) { return b(groups[i]); });
  if (under == 0) return {NAN, NAN};
  const double about = std::isnan(ratio) ? over / under : ratio;
  const double spread = pairwise_sum(n, [&](std::int64_t i) {
    const double d = a(groups[i]) - about * b(groups[i]);
    return d * d;
  });
  return {over / under, std::sqrt(spread) / under};
}

}  // namespace

std::vector<float> along_rows(const LayerGradient& layer) {
  constexpr std::int64_t kLargestGroup = 4;
  const std::int64_t rows = layer.rows / kLargestGroup * kLargestGroup;
  std::vector<float> x(static_cast<std::size_t>(rows * layer.channels));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < layer.channels; ++c)
      x[c * rows + r] = layer.g[r * layer.channels + c];
  }
  return x;
}

PrunedSample prune_and_measure(const policies::MaskPolicy& policy, const std::vector<float>& x,
                               std::int64_t draws, const RandomSource& random) {
  const std::int64_t size = policies::decision_size(policy);
  const std::int64_t count = static_cast<std::int64_t>(x.size()) / size, n = count * size;
  if (!policy.rule->random) draws = 1;
  std::vector<float> y(static_cast<std::size_t>(n));
  std::vector<double> mean(static_cast<std::size_t>(n));
  std::vector<GroupSums> groups(static_cast<std::size_t>(count));
  for (std::int64_t d = 0; d < draws; ++d) {
    policy.rule->prune(policy, random,
                       {.x = x.data(),
                        .y = y.data(),
                        .keep = nullptr,
                        .count = count,
                        .first = static_cast<std::uint64_t>(d * count)});
    for (std::int64_t i = 0; i < n; ++i) {
      const double e = double{y[i]} - x[i];
      mean[i] += e / static_cast<double>(draws);
      groups[i / size].error += e * e / static_cast<double>(draws);
      groups[i / size].kept += std::fabs(y[i]) / static_cast<double>(draws);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    GroupSums& g = groups[i / size];
    g.signal += double{x[i]} * x[i];
    g.magnitude += std::fabs(x[i]);
    g.mean_error += mean[i] * mean[i];
    g.projected += mean[i] * x[i];
  }
  for (std::int64_t g = 0; g < count; ++g)
    groups[g].closed = policy.rule->error(policy, x.data() + g * size, size, 0);

  PrunedSample out;
  const auto signal = [](const GroupSums& g) { return g.signal; };
  const auto closed = [](const GroupSums& g) { return g.closed; };
  const auto error = [](const GroupSums& g) { return g.error; };
  // Given x, the error of a ratio is that of its numerator about what is predicted.
  out.projection = ratio_of(
      groups, 0, [](const GroupSums& g) { return g.projected; }, signal);
  out.projection.value += 1;
  out.variance = ratio_of(groups, 1, error, closed);
  out.mean = ratio_of(
      groups, 1, [draws](const GroupSums& g) { return g.mean_error * static_cast<double>(draws); },
      closed);
  // Of a law, x varies too.
  out.nsr = ratio_of(groups, NAN, error, signal);
  out.shrink = ratio_of(
      groups, NAN, [](const GroupSums& g) { return g.kept; },
      [](const GroupSums& g) { return g.magnitude; });
  out.closed_nsr = ratio_of(groups, NAN, closed, signal).value;
  const auto effective = [&](const auto& of) {
    const double sum = pairwise_sum(count, [&](std::int64_t g) { return of(groups[g]); });
    const double squares =
        pairwise_sum(count, [&](std::int64_t g) { return of(groups[g]) * of(groups[g]); });
    return squares > 0 ? sum * sum / squares : 0;
  };
  out.effective = effective(signal);
  out.effective_error = effective(closed);
  return out;
}

Finding judged(std::string what, double predicted, const Estimate& measured, double effective,
               double tolerance) {
  return closed_form(std::move(what), predicted, measured.value, measured.error,
                     !(effective < kFewestGroups), tolerance);
}

std::string shown(const Estimate& e) {
  if (!std::isfinite(e.value)) return "-";
  return half_text(e.value, stats::kNormal95 * e.error, 4);
}

// Quadrature by the trapezoidal rule after a substitution that makes the integrand die out on both
// sides: it converges then faster than any power of the step.

namespace {

using policies::Estimator;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Distribution folded(const Distribution& law) {
  if (!law.name().starts_with("normal") && !law.name().starts_with("laplace") &&
      !law.name().starts_with("lognormal"))
    throw Error("a law of gradients: expected normal, laplace or lognormal:S, found " + law.name());
  return Distribution::parse(law.name(), true);
}

/// Laws below are folded: of magnitudes.
struct Node {
  double a, weight;
};

/// Expectations over a magnitude: sum of weight f(a). Lognormal: steps of its normal score. Others:
/// a = exp(t - exp(-t)) (Takahasi and Mori 1974).
std::vector<Node> nodes(const Distribution& law, double step) {
  std::vector<Node> out;
  const Density& density = law.density();
  constexpr double kTail = 8.3;  // beyond, less than 1e-16 of a normal law
  if (law.name().starts_with("|lognormal")) {
    const auto [p0, p1, p2] = density.moments(0, kInfinity);
    const double sigma = std::sqrt(portable::log(p2 / (p1 * p1)));
    // Weighed with a^2 the law is the same, 2 sigma further up.
    for (double z = -kTail; z <= kTail + 2 * sigma; z += step)
      out.push_back({portable::exp(sigma * z), normal::pdf(z) * step});
    return out;
  }
  for (double t = -3.7; t <= 3.9; t += step) {
    const double a = portable::exp(t - portable::exp(-t));
    out.push_back({a, density.pdf(a) * a * (1 + portable::exp(-t)) * step});
  }
  return out;
}

/// P(at least `least` of n independent events of probability p).
double at_least(int least, int n, double p) {
  double sum = 0;
  for (int k = least; k <= n; ++k) {
    double term = 1;
    for (int i = 0; i < k; ++i) term *= p * (n - i) / (i + 1);
    sum += term * portable::pow(1 - p, n - k);
  }
  return sum;
}

/// E a^power over the elements that greedy prunes.
double pruned_moment(const unit::Sparsity& pattern, const Distribution& law, int power) {
  double sum = 0;
  for (const Node& n : nodes(law, 1.0 / 64)) {
    const double above = law.density().moments(n.a, kInfinity).p0;
    sum += n.weight * portable::pow(n.a, power) * at_least(pattern.kept, pattern.group - 1, above);
  }
  return sum;
}

/// E max(a - b - c - d, 0)^2.
double excess_square(const Distribution& law) {
  const std::vector<Node> at = nodes(law, 1.0 / 8);
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t k = 0; k <= j; ++k) {
        const int orders = i == j && j == k ? 1 : i == j || j == k ? 3 : 6;
        const double weight = orders * at[i].weight * at[j].weight * at[k].weight;
        if (weight < 1e-18) continue;
        const double t = at[i].a + at[j].a + at[k].a;
        const auto [p0, p1, p2] = law.density().moments(t, kInfinity);
        sum += weight * (p2 - 2 * t * p1 + t * t * p0);
      }
    }
  }
  return sum;
}

/// E of the variance of an approximate 2:4 group, which grows as the square of a common factor.
double approx_variance(const Distribution& law) {
  constexpr double kNegligible = 1e-11;
  const std::vector<Node> at = nodes(law, 1.0 / 4);
  const double scale = law.density().moments(0, kInfinity).p2;
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double square = at[i].a * at[i].a;
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t k = 0; k <= j; ++k) {
        const double three = square * at[i].weight * at[j].weight * at[k].weight;
        if (three < kNegligible * scale) continue;
        for (std::size_t l = 0; l <= k; ++l) {
          if (three * at[l].weight < kNegligible * scale) continue;
          const std::array<std::size_t, 4> index = {i, j, k, l};
          std::array<float, 4> x{};
          int run = 1, orders = 24;  // 4! over the factorials of equal runs
          for (std::size_t e = 0; e < 4; ++e) {
            x[e] = static_cast<float>(at[index[e]].a / at[i].a);
            run = e > 0 && index[e] == index[e - 1] ? run + 1 : 1;
            orders /= run;
          }
          sum += orders * three * at[l].weight *
                 policies::estimator_variance(Estimator::approx, {2, 4}, x.data());
        }
      }
    }
  }
  return sum;
}

bool is(const unit::Sparsity& pattern, int kept, int group) {
  return pattern.kept == kept && pattern.group == group;
}

}  // namespace

std::string_view to_string(PruneMethod method) {
  constexpr std::string_view kNames[] = {"mvue", "mvue-approx", "random-unbiased", "greedy"};
  return kNames[static_cast<std::size_t>(method)];
}

MagnitudeMoments magnitude_moments(const Distribution& law) {
  const auto [p0, p1, p2] = folded(law).density().moments(0, kInfinity);
  return {p1, p2};
}

double greedy_shrink(const unit::Sparsity& pattern, const Distribution& law) {
  return 1 - pruned_moment(pattern, folded(law), 1) / magnitude_moments(law).first;
}

std::optional<double> predicted_nsr(PruneMethod method, const unit::Sparsity& pattern,
                                    const Distribution& law) {
  const Distribution magnitude = folded(law);
  const auto [first, second] = magnitude_moments(law);
  switch (method) {
    case PruneMethod::random:
      return static_cast<double>(pattern.group) / pattern.kept - 1;
    case PruneMethod::greedy:
      return pruned_moment(pattern, magnitude, 2) / second;
    case PruneMethod::approx:
      if (!is(pattern, 2, 4)) return {};
      return approx_variance(magnitude) / (4 * second);
    case PruneMethod::exact:
      break;
  }
  if (pattern.kept == pattern.group) return 0;
  if (is(pattern, 1, 2)) return first * first / second;
  if (is(pattern, 2, 4))  // E S^2 = 4 second + 12 first^2; any of the four may exceed the others
    return (6 * first * first - 2 * second + 2 * excess_square(magnitude)) / (4 * second);
  return {};
}

// Masks as the roles of a recipe, and their absence as an entry of its layers.

namespace {

/// The mask with options added inside its parentheses.
Json mask(const std::string& text, std::string_view options) {
  if (text.empty()) return nullptr;
  std::string out = text;
  out.insert(out.rfind(')'), options);
  return out;
}

Json role(const Json& mask_text) { return {{"format", nullptr}, {"mask", mask_text}}; }

}  // namespace

Json recipe_of(const Pruning& pruning, const net::Graph& graph) {
  const std::vector<net::GemmLayer> layers = net::gemm_layers(graph);
  const std::string_view along_batch = ",axis=batch,remainder=pad";
  const Json dense = role(nullptr);
  Json recipe = {
      {"roles",
       {{"weight", role(mask(pruning.weight, ",remainder=pad"))},
        {"gradient",
         {{"dgrad", role(mask(pruning.dgrad, along_batch))},
          {"wgrad", role(mask(pruning.wgrad, along_batch))}}}}},
      {"layers",
       Json::array({{{"match", layers.back().name},
                     {"roles",
                      {{"weight", dense}, {"gradient", {{"dgrad", dense}, {"wgrad", dense}}}}}}})}};
  if (!pruning.activation.empty()) {
    recipe["roles"]["activation"] = role(mask(pruning.activation, ",remainder=pad"));
    recipe["layers"][0]["roles"]["activation"] = dense;
    for (const net::GemmLayer& layer : layers) {
      if (layer.weight != nullptr) continue;
      Json entry = {{"match", layer.name}};
      entry["roles"]["activation"] = dense;
      recipe["layers"].push_back(std::move(entry));
    }
  }
  return recipe;
}

}  // namespace numemu::experiments::mvue
