// Unbiased pruning of the gradients of real networks: their means and variances, layer by layer.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "emu/net/data/glyphs/glyphs.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/mvue/pruning.hpp"
#include "formats/portable/pairwise.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

namespace {

constexpr const char* kUnbiased[] = {"mvue(1:2)", "mvue(2:4)", "mvue-approx(2:4)",
                                     "random-unbiased(2:4)"};
constexpr int kLargestGroup = 4;

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
  net::Graph graph = net::build_net(name, data);
  net::initialize(graph, 0);
  net::TrainOptions options;
  options.optimizer = net::recommended_optimizer(name);
  net::use_recommended_rates(options, name);
  options.epochs = 1;
  options.batch = 32;
  net::Numerics float32;
  net::train(graph, restricted(data, train, false), options, float32);
  return layer_gradients(graph, data, batch, 1, 0);
}

/// [channels, rows]: groups run along batch and space, as a weight gradient sums them.
std::vector<float> along_rows(const LayerGradient& layer) {
  const std::int64_t rows = layer.rows / kLargestGroup * kLargestGroup;
  std::vector<float> x(static_cast<std::size_t>(rows * layer.channels));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < layer.channels; ++c)
      x[c * rows + r] = layer.g[r * layer.channels + c];
  return x;
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
    const stats::PairedInterval t = stats::paired_interval(of);
    const double error = (t.high - t.low) / 2 / stats::student_quantile(draws - 1, 0.025);
    missed += std::fabs(t.mean) > width * error + rounding;
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
      const mvue::PrunedSample s = mvue::prune_and_measure(policy, x, draws, random);
      if (s.effective >= mvue::kFewestGroups) {
        ++tally.means;
        CHECK(mvue::judged("", 1, s.projection, s.effective).verdict == Verdict::holds);
      }
      if (s.closed_nsr == 0) {
        ++tally.free;
        CHECK(s.nsr.value == 0);
      }
      if (s.effective_error >= mvue::kFewestGroups) {
        ++tally.variances;
        INFO("variance " << s.variance.value << " +- " << s.variance.error << ", mean "
                         << s.mean.value << " +- " << s.mean.error);
        CHECK(mvue::judged("", 1, s.variance, s.effective_error).verdict == Verdict::holds);
        CHECK(mvue::judged("", 1, s.mean, s.effective_error).verdict == Verdict::holds);
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
