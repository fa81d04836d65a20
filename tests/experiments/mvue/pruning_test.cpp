// Pruning of gradients: noise in closed form, published figures and samples; tensors and gradients
// of networks pruned many times; recipes.
#include "experiments/mvue/pruning.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "emu/net/data/glyphs/glyphs.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"
#include "policies/mask/kept_bits.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "policies/mask/rules/greedy.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace pruning_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::mvue;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr unit::Sparsity kOneOfTwo{1, 2}, kTwoOfFour{2, 4};
constexpr double kQuadrature = 1e-6;  // relative, as documented

Distribution law(const std::string& name) { return Distribution::parse(name, false); }
double nsr(PruneMethod method, unit::Sparsity pattern, const std::string& name) {
  return predicted_nsr(method, pattern, law(name)).value();
}

}  // namespace

TEST_CASE("1:2 has closed forms", "[fast]") {
  const double pi = std::numbers::pi;
  CHECK(nsr(PruneMethod::exact, kOneOfTwo, "normal") == Approx(2 / pi).epsilon(1e-12));
  CHECK(nsr(PruneMethod::exact, kOneOfTwo, "laplace") == Approx(0.5).epsilon(1e-12));
  CHECK(nsr(PruneMethod::greedy, kOneOfTwo, "normal") == Approx(0.5 - 1 / pi).epsilon(kQuadrature));
  CHECK(greedy_shrink(kOneOfTwo, law("normal")) == Approx(std::sqrt(0.5)).epsilon(kQuadrature));
  for (const double s : {0.5, 1.0, 2.0}) {
    const std::string name = "lognormal:" + std::to_string(s);
    CHECK(nsr(PruneMethod::exact, kOneOfTwo, name) == Approx(std::exp(-s * s)).epsilon(1e-12));
    CHECK(nsr(PruneMethod::greedy, kOneOfTwo, name) ==
          Approx(normal::cdf(-std::sqrt(2.0) * s)).epsilon(kQuadrature));
    CHECK(greedy_shrink(kOneOfTwo, law(name)) ==
          Approx(normal::cdf(s / std::sqrt(2.0))).epsilon(kQuadrature));
  }
  CHECK(nsr(PruneMethod::random, kTwoOfFour, "normal") == 1);
  CHECK(nsr(PruneMethod::random, {1, 4}, "normal") == 3);
  CHECK(nsr(PruneMethod::exact, {4, 4}, "normal") == 0);
  CHECK_FALSE(predicted_nsr(PruneMethod::exact, {4, 8}, law("normal")));
  CHECK_THROWS_AS(predicted_nsr(PruneMethod::exact, kOneOfTwo, law("uniform")), Error);
}

TEST_CASE("2:4 has the published ratios", "[fast]") {
  // Exact for Laplace: an excess over the others is memoryless, P = 1/8.
  CHECK(nsr(PruneMethod::exact, kTwoOfFour, "laplace") == Approx(0.3125).epsilon(kQuadrature));
  struct Row {
    const char* name;
    double exact, approx, greedy;  // measured with 60000 blocks
  };
  constexpr double kMeasured = 0.01;  // three digits, or 240000 numbers of a heavy tail
  for (const Row& row :
       {Row{"normal", 0.474, 0.503, 0.1326}, Row{"laplace", 0.313, 0.347, 0.0799},
        Row{"lognormal:0.5", 0.674, 0.698, 0.2034}, Row{"lognormal:1", 0.2015, 0.2325, 0.0479}}) {
    INFO(row.name);
    CHECK(nsr(PruneMethod::exact, kTwoOfFour, row.name) == Approx(row.exact).epsilon(kMeasured));
    CHECK(nsr(PruneMethod::approx, kTwoOfFour, row.name) == Approx(row.approx).epsilon(kMeasured));
    CHECK(nsr(PruneMethod::greedy, kTwoOfFour, row.name) == Approx(row.greedy).epsilon(kMeasured));
  }
}

TEST_CASE("predicted ratios are the means over samples", "[fast]") {
  constexpr std::int64_t kGroups = 100000;
  constexpr double kErrors = 4;
  for (const char* name : {"normal", "laplace", "lognormal:0.5", "lognormal:1"}) {
    INFO(name);
    const std::vector<float> x = sample(name, 4 * kGroups, 8);
    const double second = magnitude_moments(law(name)).second;
    const auto check = [&](double predicted, auto&& squares) {
      double mean = 0, square = 0;
      for (std::int64_t g = 0; g < kGroups; ++g) {
        const double v = squares(x.data() + 4 * g) / (4 * second);
        mean += v / kGroups;
        square += v * v / kGroups;
      }
      CHECK(std::fabs(mean - predicted) <= kErrors * std::sqrt((square - mean * mean) / kGroups));
    };
    for (const auto& [method, estimator] : {std::pair{PruneMethod::exact, Estimator::exact},
                                            {PruneMethod::approx, Estimator::approx}})
      check(nsr(method, kTwoOfFour, name), [e = estimator](const float* group) {
        return estimator_variance(e, kTwoOfFour, group);
      });
    check(nsr(PruneMethod::greedy, kTwoOfFour, name), [](const float* group) {
      return pruned_squares(group, 4, largest_of_group(kTwoOfFour, group));
    });
  }
}

TEST_CASE("a wide lognormal, sampled where its squares are", "[fast]") {
  // Few samples of the law itself carry its squares: all scores are drawn kShift higher, and
  // weighed.
  constexpr double kSigma = 2, kShift = 1.35, kErrors = 4;
  constexpr std::int64_t kGroups = 100000;
  const std::vector<float> scores = sample("normal", 4 * kGroups, 9);
  const Distribution wide = law("lognormal:2");
  const double second = std::exp(2 * kSigma * kSigma);
  CHECK(magnitude_moments(wide).second == Approx(second).epsilon(1e-12));
  for (const auto& [method, estimator] : {std::pair{PruneMethod::exact, Estimator::exact},
                                          {PruneMethod::approx, Estimator::approx}}) {
    double mean = 0, square = 0;
    for (std::int64_t g = 0; g < kGroups; ++g) {
      float x[4];
      double log_weight = 0;
      for (int i = 0; i < 4; ++i) {
        const double z = scores[static_cast<std::size_t>(4 * g + i)];
        log_weight += (z * z - (z + kShift) * (z + kShift)) / 2;
        x[i] = static_cast<float>(std::exp(kSigma * (z + kShift)));
      }
      const double v = std::exp(log_weight) * estimator_variance(estimator, kTwoOfFour, x);
      mean += v / (4 * second) / kGroups;
      square += v / (4 * second) * v / (4 * second) / kGroups;
    }
    CHECK(std::fabs(mean - nsr(method, kTwoOfFour, "lognormal:2")) <=
          kErrors * std::sqrt((square - mean * mean) / kGroups));
  }
}

// Tensors pruned many times.

namespace {

/// x, every second element of it lost.
std::vector<float> numbers(std::int64_t n) {
  RandomSource random;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5));
  return x;
}

}  // namespace

TEST_CASE("a pruned sample: no bias, the closed form; and bias where there is some", "[fast]") {
  const std::vector<float> x = numbers(8000);
  RandomSource random;
  random.stream = Stream::mask;
  const auto pruned = [&](const char* rule) {
    return prune_and_measure(policies::parse_mask(rule), x, 32, random);
  };
  for (const char* rule : {"mvue(1:2)", "mvue(2:4)", "mvue-approx(2:4)", "random-unbiased(2:4)"}) {
    INFO(rule);
    const PrunedSample s = pruned(rule);
    CHECK(experiments::testing::agrees(judged("", 1, s.projection, s.effective)));
    CHECK(experiments::testing::agrees(judged("", 1, s.variance, s.effective_error)));
    CHECK(experiments::testing::agrees(judged("", 1, s.mean, s.effective_error)));
    CHECK(std::fabs(s.nsr.value - s.closed_nsr) <= 0.05 * s.closed_nsr);
  }
  // A rule that keeps the larger one of a pair has no chance in it: |mean e|^2 is |e|^2, and what
  // is projected is what is not lost.
  const PrunedSample greedy = pruned("greedy(1:2)");
  CHECK(greedy.variance.value == Approx(1).epsilon(1e-12));
  CHECK(greedy.projection.value == Approx(1 - greedy.nsr.value).epsilon(1e-12));
  CHECK(judged("", 1, greedy.projection, greedy.effective).verdict == Verdict::fails);
  CHECK(judged("", 1, greedy.projection, 10).verdict == Verdict::undecided);
}

TEST_CASE("recipes prune everything but the output layer", "[fast]") {
  const net::Graph graph = net::build_net("mlp", {1, 28, 28}, 10);
  Json json = recipe_of({"greedy(1:2)", "mvue(2:4)", "transposable(2:4,refresh=40)"}, graph);
  json["numemu_recipe"] = 1;
  const policies::Recipe recipe = policies::Recipe::parse(json, "test");
  const policies::LayerRecipe hidden = recipe.layer("fc1"), output = recipe.layer("fc3");
  REQUIRE(hidden.masks[policies::RolePart::gradient_dgrad]);
  CHECK(policies::to_string(*hidden.masks[policies::RolePart::gradient_dgrad]) ==
        "greedy(1:2,remainder=pad,axis=batch)");
  REQUIRE(hidden.masks[policies::RolePart::gradient_wgrad]);
  CHECK(hidden.masks[policies::RolePart::gradient_wgrad]->rule->name == std::string("mvue"));
  CHECK(hidden.masks[policies::RolePart::gradient_wgrad]->axis == policies::MaskAxis::batch);
  REQUIRE(hidden.masks[policies::RolePart::weight]);
  CHECK(hidden.masks[policies::RolePart::weight]->refresh == 40);
  CHECK_FALSE(output.masks[policies::RolePart::gradient_dgrad]);
  CHECK_FALSE(output.masks[policies::RolePart::gradient_wgrad]);
  CHECK_FALSE(output.masks[policies::RolePart::weight]);
}

TEST_CASE("activations are pruned where they meet a weight", "[fast]") {
  const net::Graph graph = net::build_net("char-transformer", {32}, 40);
  const policies::Recipe recipe =
      policies::Recipe::make(recipe_of({"", "", "", "greedy(2:4)"}, graph), "test", 0);
  const std::vector<net::GemmLayer> layers = net::gemm_layers(graph);
  for (const net::GemmLayer& layer : layers) {
    INFO(layer.name);
    const bool pruned = layer.weight != nullptr && layer.name != layers.back().name;
    CHECK(recipe.layer(layer.name).masks[policies::RolePart::activation].has_value() == pruned);
  }
  CHECK_NOTHROW(policies::RecipeNumerics(recipe, graph).require_trainable("test"));
}

// Gradients of networks: their means and variances, layer by layer.

namespace {

constexpr const char* kUnbiased[] = {"mvue(1:2)", "mvue(2:4)", "mvue-approx(2:4)",
                                     "random-unbiased(2:4)"};

/// The fewest first images of glyphs that are a data set.
net::Dataset few_glyphs() {
  constexpr std::int64_t count = net::Dataset::kValidation + net::Dataset::kCalibration;
  return {"glyphs",
          net::glyphs::kClasses,
          net::glyphs::generate(0, count),
          net::glyphs::generate(count, count + 1),
          {0.168540},
          {0.182024}};
}

/// Gradients of a batch after one epoch on `train` images.
std::vector<LayerGradient> gradients_of(const std::string& name, std::int64_t train,
                                        std::int64_t batch) {
  const net::Dataset data = few_glyphs();
  return layer_gradients(briefly_trained(name, data, train, 0), data, batch, 1, 0);
}

/// How many of `signs` random sums, sum +-x_i, the mean of `draws` pruned ones misses: weight
/// gradients whose other operand is noise. 4 standard errors, with the quantile of Student's t law
/// that has their tail, as the error is that of the draws themselves; rounding where they all
/// agree.
int sums_missed(const policies::MaskPolicy& policy, const std::vector<float>& x, int signs,
                int draws) {
  const auto n = static_cast<std::int64_t>(x.size());
  const RandomSource coins{.seed = 5, .stream = Stream::probe, .tensor = 77, .draw = 0};
  std::vector<std::uint32_t> bits(x.size());
  for (std::int64_t i = 0; i < n; ++i) bits[i] = coins.bits(static_cast<std::uint64_t>(i), 32);
  const auto sign = [&](int k, std::int64_t i) { return (bits[i] >> k & 1U) != 0 ? 1.0 : -1.0; };
  const auto sum = [&](int k, const std::vector<float>& of) {
    return pairwise_sum(n, [&](std::int64_t i) { return sign(k, i) * of[i]; });
  };
  std::vector<std::vector<double>> errors(static_cast<std::size_t>(signs));
  std::vector<double> exact;
  for (int k = 0; k < signs; ++k) exact.push_back(sum(k, x));
  std::vector<float> y(x.size());
  RandomSource random;
  random.stream = Stream::mask;
  for (int d = 0; d < draws; ++d) {
    const std::int64_t groups = n / policies::decision_size(policy);
    policy.rule->prune(policy, random,
                       {.x = x.data(),
                        .y = y.data(),
                        .keep = nullptr,
                        .count = groups,
                        .first = static_cast<std::uint64_t>(d * groups)});
    for (int k = 0; k < signs; ++k) errors[k].push_back(sum(k, y) - exact[k]);
  }
  const double size = pairwise_sum(n, [&](std::int64_t i) { return std::fabs(x[i]); });
  // y is x over a probability, each rounded to float32 a few times.
  const double rounding = 4 * 0x1p-24 * size;
  constexpr double kTail = 3.167e-5;  // of a normal law beyond 4
  const double width = stats::student_quantile(draws - 1, kTail);
  int missed = 0;
  for (const std::vector<double>& of : errors) {
    // A rule without draws gives equal errors, whose spread is 0.
    const stats::Mean mean = stats::mean_of(of);
    missed += std::fabs(mean.value) > width * mean.error + rounding;
  }
  return missed;
}

struct Tally {
  int layers = 0;
  int means = 0, variances = 0;  ///< figures that enough groups carry
  int free = 0;                  ///< without any error, as the closed form says
  int biased = 0;                ///< layers where greedy pruning is told from the unbiased rules
};

/// Every layer under every unbiased rule. Greedy pruning has no bias where no two neighbours are
/// both other than 0: max-pooling passes a gradient to one of its inputs.
Tally check_layers(const std::vector<LayerGradient>& layers, int signs, int draws) {
  Tally tally;
  for (const LayerGradient& layer : layers) {
    const std::vector<float> x = along_rows(layer);
    REQUIRE(std::any_of(x.begin(), x.end(), [](float v) { return v != 0; }));
    ++tally.layers;
    for (const char* rule : kUnbiased) {
      INFO(layer.layer << ", " << rule);
      const policies::MaskPolicy policy = policies::parse_mask(rule);
      CHECK(sums_missed(policy, x, signs, draws) == 0);
      RandomSource random;
      random.seed = 1;
      random.stream = Stream::mask;
      const PrunedSample s = prune_and_measure(policy, x, draws, random);
      if (s.effective >= kFewestGroups) {
        ++tally.means;
        CHECK(experiments::testing::agrees(judged("", 1, s.projection, s.effective)));
      }
      if (s.closed_nsr == 0) {
        ++tally.free;
        CHECK(s.nsr.value == 0);
      }
      if (s.effective_error >= kFewestGroups) {
        ++tally.variances;
        INFO("variance " << s.variance.value << " +- " << s.variance.error << ", mean "
                         << s.mean.value << " +- " << s.mean.error);
        CHECK(experiments::testing::agrees(judged("", 1, s.variance, s.effective_error)));
        CHECK(experiments::testing::agrees(judged("", 1, s.mean, s.effective_error)));
      }
    }
    tally.biased += sums_missed(policies::parse_mask("greedy(1:2)"), x, signs, 2) > 0;
  }
  return tally;
}

}  // namespace

TEST_CASE("gradients of lenet on glyphs: no bias, the closed variance, in every layer", "[fast]") {
  const std::vector<LayerGradient> layers = gradients_of("lenet", 64, 96);
  const Tally tally = check_layers(layers, 2, 10);
  CHECK(tally.layers == 5);
  CHECK(tally.means >= 16);
  // Convolutions under all but random-unbiased have no error; the output layer has few gradients.
  CHECK(tally.free == 2 * 3);
  CHECK(tally.variances >= 2 + 4 + 4);
  CHECK(tally.biased == 3);
}

TEST_CASE("gradients of resnet20 on glyphs: no bias, the closed variance, in every layer",
          "[slow]") {
  const std::vector<LayerGradient> layers = gradients_of("resnet20", 256, 32);
  const Tally tally = check_layers(layers, 4, 16);
  CHECK(tally.layers >= 20);
  CHECK(tally.means >= 4 * 19);
  CHECK(tally.variances >= 4 * 19);
  CHECK(tally.biased == tally.layers);
}

}  // namespace pruning_test
