// Divergence from batch-norm statistics: its values, its gradient, and which statistics a folded
// network has.
#include "policies/calibrate/synthesize.hpp"

#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace synthesize_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

/// One channel with that mean and variance exactly: two values.
net::Tensor two(double mean, double variance) {
  net::Tensor x({2, 1});
  x.data = {static_cast<float>(mean - std::sqrt(variance)),
            static_cast<float>(mean + std::sqrt(variance))};
  return x;
}

net::Tensor normal_tensor(const net::Shape& shape, std::uint32_t tensor) {
  RandomSource random;
  random.tensor = tensor;
  net::Tensor x(shape);
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>(normal::quantile(random.uniform(i) + 0x1p-33));
  return x;
}

/// A small network with batch normalisation whose statistics are those of numbers of mean 1 and
/// deviation 2.
net::Graph small_network() {
  net::Graph graph = net::build_net("mobilenet-small", {8, 8, 1}, 10);
  net::initialize(graph, 2);
  net::Tensor data = normal_tensor({64, 8, 8, 1}, 9);
  for (float& x : data.data) x = 2 * x + 1;
  net::Numerics float32;
  reestimate_batch_norm(graph, {{data}}, float32);
  return graph;
}

}  // namespace

TEST_CASE("norm targets: KL of two normal laws", "[fast]") {
  constexpr double kFloat32 = 1e-6;  // the two values are rounded
  CHECK(norm_divergence({"", {0}, {1}}, two(0.5, 2), nullptr) ==
        Approx(0.1590736).epsilon(kFloat32));
  CHECK(norm_divergence({"", {1}, {4}}, two(0, 1), nullptr) == Approx(1.3068528).epsilon(kFloat32));
  CHECK(norm_divergence({"", {3}, {2}}, two(3, 2), nullptr) == Approx(0).margin(1e-6));
  CHECK(norm_divergence({"", {0}, {0}}, two(3, 2), nullptr) == 0);  // a dead channel
  CHECK(norm_divergence({"", {0}, {1}}, two(3, 0), nullptr) == 0);
}

TEST_CASE("norm targets: the gradient is that of central differences", "[fast]") {
  const NormTarget target{"", {0.3, -1, 2}, {0.5, 2, 1}};
  net::Tensor x = normal_tensor({4, 2, 3}, 1), gradient;
  norm_divergence(target, x, &gradient);
  REQUIRE(gradient.shape == x.shape);
  // Steps of 2^-7 are exact in float32; the truncation is of h^2, here below 1e-3 of the largest.
  constexpr float kStep = 0x1p-7f;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    net::Tensor up = x, down = x;
    up.data[i] += kStep;
    down.data[i] -= kStep;
    const double slope =
        (norm_divergence(target, up, nullptr) - norm_divergence(target, down, nullptr)) /
        (double{up.data[i]} - double{down.data[i]});
    CHECK(double{gradient.data[i]} == Approx(slope).epsilon(2e-3).margin(2e-3));
  }
}

TEST_CASE("norm targets: a folded layer's output has the normalised statistics", "[fast]") {
  // What batch normalisation gives a batch whose statistics are the running ones has mean b and
  // variance g^2 v / (v + e): taken from the values behind it, in the network that is not folded.
  net::Graph graph = small_network(), folded = small_network();
  const std::vector<NormTarget> targets = fold_to_targets(folded);
  REQUIRE(targets.size() > 5);
  const net::Tensor x = normal_tensor({32, 8, 8, 1}, 4);
  std::vector<net::Tensor> before, after;
  net::Numerics float32;
  const net::Observer plain = [&](const net::Node& node, const net::Tensor& y) {
    if (node.op->kind() == "batch_norm") before.push_back(y);
  };
  const net::Observer bare = [&](const net::Node& node, const net::Tensor& y) {
    for (const NormTarget& target : targets)
      if (target.value == node.name) after.push_back(y);
  };
  net::forward(graph, x, float32, {}, &plain);
  net::forward(folded, x, float32, {}, &bare);
  REQUIRE(before.size() == targets.size());
  REQUIRE(after.size() == targets.size());
  for (std::size_t t = 0; t < targets.size(); ++t) {
    INFO(targets[t].value);
    const auto channels = static_cast<std::int64_t>(targets[t].mean.size());
    const auto of = [&](const net::Tensor& y) {
      return net::batch_statistics(y.data.data(), y.size() / channels, channels, {});
    };
    const net::BatchStatistics unfolded = of(before[t]), own = of(after[t]);
    for (std::int64_t c = 0; c < channels; ++c) {
      CHECK(own.mean[c] == Approx(unfolded.mean[c]).margin(1e-4));
      CHECK(own.variance[c] == Approx(unfolded.variance[c]).epsilon(1e-3).margin(1e-6));
    }
  }
  net::Graph without = net::build_net("mlp", {8, 8, 1}, 10);
  CHECK_THAT(numemu::test::message_of([&] { fold_to_targets(without); }),
             Catch::Contains("expected batch normalisation"));
}

TEST_CASE("synthesize: samples come closer to the statistics than noise, and to the labels",
          "[fast]") {
  net::Graph folded = small_network();
  const std::vector<NormTarget> targets = fold_to_targets(folded);
  Synthesis options{.batch = 8, .steps = 25, .rate = 0.1, .smooth = Smoothing::none, .seed = 5};
  options.source = SampleSource::noise;
  const SynthesizedSamples noise = synthesize(folded, targets, 10, options);
  CHECK(noise.x.shape == net::Shape{10, 8, 8, 1});
  CHECK(noise.labels.empty());
  options.source = SampleSource::batch_norm;
  std::int64_t steps = 0;
  const SynthesizedSamples made =
      synthesize(folded, targets, 10, options,
                 [&](std::int64_t, std::int64_t of, double) { steps += of == 50; });
  CHECK(steps == 50);  // two batches
  CHECK(made.x.size() == noise.x.size());
  CHECK(made.divergence < 0.5 * noise.divergence);
  CHECK(synthesize(folded, targets, 10, options).x.data == made.x.data);
  options.source = SampleSource::classes;
  const SynthesizedSamples classes = synthesize(folded, targets, 10, options);
  REQUIRE(classes.labels.size() == 10);
  net::Numerics float32;
  const auto margin = [&](const net::Tensor& x) {
    const net::Tensor logits = net::forward(folded, x, float32);
    double sum = 0;
    for (std::size_t i = 0; i < 10; ++i)
      sum += logits.data[i * 10 + static_cast<std::size_t>(classes.labels[i])];
    return sum;
  };
  CHECK(margin(classes.x) > margin(made.x));
}

TEST_CASE("synthesize: what is smoothed", "[fast]") {
  net::Graph folded = small_network();
  const std::vector<NormTarget> targets = fold_to_targets(folded);
  constexpr std::int64_t kCount = 300, kSide = 8;
  // One step of no length: the samples are what they begin as.
  const auto begun = [&](Smoothing smooth) {
    return synthesize(folded, targets, kCount,
                      {.batch = kCount, .steps = 1, .rate = 1e-12, .smooth = smooth, .seed = 2})
        .x;
  };
  // Mean of the products of pixels `apart` away from each other along a row, inside the border.
  const auto covariance = [&](const net::Tensor& x, std::int64_t apart) {
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t n = 0; n < kCount; ++n) {
      for (std::int64_t h = 1; h + 1 < kSide; ++h) {
        for (std::int64_t w = 1; w + 1 + apart < kSide; ++w, ++count) {
          const std::int64_t i = (n * kSide + h) * kSide + w;
          sum += double{x.data[i]} * x.data[i + apart];
        }
      }
    }
    return sum / static_cast<double>(count);
  };
  // 1 2 1 along both axes, times 8/3: the law of independent pixels keeps its variance, neighbours
  // correlate by 4/6, next ones by 1/6. Errors of the means are below 0.03.
  const net::Tensor images = begun(Smoothing::images), noise = begun(Smoothing::gradient);
  CHECK(covariance(images, 0) == Approx(1).margin(0.12));
  CHECK(covariance(images, 1) == Approx(4.0 / 6).margin(0.12));
  CHECK(covariance(images, 2) == Approx(1.0 / 6).margin(0.12));
  CHECK(covariance(noise, 0) == Approx(1).margin(0.12));
  CHECK(covariance(noise, 1) == Approx(0).margin(0.12));
  CHECK(noise.data == begun(Smoothing::none).data);
  for (const Smoothing smooth : {Smoothing::images, Smoothing::gradient}) {
    INFO(to_string(smooth));
    CHECK(parse_smoothing(to_string(smooth)) == smooth);
    Synthesis options{.batch = 8, .steps = 25, .rate = 0.1, .smooth = smooth, .seed = 5};
    const double made = synthesize(folded, targets, 8, options).divergence;
    options.source = SampleSource::noise;
    CHECK(made < 0.5 * synthesize(folded, targets, 8, options).divergence);
  }
  CHECK_THAT(numemu::test::message_of([] { parse_smoothing("image"); }),
             Catch::Contains("unknown smoothing 'image'; did you mean 'images'"));
}

}  // namespace synthesize_test
