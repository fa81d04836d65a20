// ActNN: variances of gradients, what layers add, allocation, bytes and training at small size.
#include <algorithm>
#include <cmath>

#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/views.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/actnn/passes.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace actnn_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::experiments::testing::held;
using numemu::test::TemporaryFolder;

namespace {

using namespace actnn;

ExperimentRun actnn_run(const TemporaryFolder& folder, const std::vector<std::string>& settings) {
  return testing::smoke_run("actnn", folder, settings);
}

double normal_number(std::uint64_t i, Stream stream) {
  const RandomSource random{.seed = 1, .stream = stream};
  return normal::quantile((random.bits(i, 31) + 0.5) * 0x1p-31);
}

/// 16 samples of 512 elements that a ReLU leaves of normal numbers, as in the specification.
net::Tensor rectified() {
  net::Tensor x({16, 512});
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = std::max(0.0f, static_cast<float>(normal_number(i, Stream::probe)));
  return x;
}

}  // namespace

TEST_CASE("actnn: the variance of a context, by hand", "[fast]") {
  net::Tensor x({2, 4});
  x.data = {0, 1, 2, 3, 0, 0.5f, 1, 3};
  const std::vector<double> variance = context_variance(x, 4, {2, 2});
  CHECK(variance == std::vector<double>{0, 0, 0, 0, 0, 0.25, 0, 0});
  // 3 / 1 is a bfloat16 number: one bit has the codes 0 and 3.
  CHECK(context_variance(x, 4, {1, 1})[1] == Approx(9 * (1.0 / 3) * (2.0 / 3)));
  CHECK(context_bound(x, 4, {2, 1})[0] == 0.25);
  CHECK(context_bound(x, 4, {2, 1})[7] == 9.0 / 4);
}

TEST_CASE("actnn: the bound is loose behind a ReLU", "[fast]") {
  // Half of what a ReLU leaves lies exactly on the lowest code: the specification has 3.05 for
  // another draw, whose error is as large.
  const net::Tensor x = rectified();
  const std::vector<int> bits(16, 2);
  const std::vector<double> variance = context_variance(x, 256, bits),
                            bounds = context_bound(x, 256, bits);
  double exact = 0;
  for (const double v : variance) exact += v;
  std::vector<double> ratios;
  for (std::size_t first = 0; first < x.data.size(); first += 512) {
    double own = 0, bound = 0;
    for (std::size_t i = first; i < first + 512; ++i) {
      own += variance[i];
      bound += bounds[i];
    }
    ratios.push_back(bound / own);
  }
  const stats::Mean ratio = stats::mean_of(ratios);
  CHECK(std::fabs(ratio.value - 3.05) <= kErrors * std::sqrt(2.0) * ratio.error);
  CHECK(kErrors * ratio.error <= 0.3);
  // The published code decodes with minima and scales rounded to bfloat16: a bias of about 1.6e-3
  // of the elements, against noise of 0.3 and more.
  const Format& bfloat16 = find_format("bfloat16");
  const auto rounded = [&](double v) {
    return to_double(decode(
        bfloat16, encode(bfloat16, value_of(v), {RoundingMode::rne}, Overflow::saturate).code));
  };
  double bias = 0, norm = 0;
  for (std::size_t first = 0; first < x.data.size(); first += 256) {
    const auto begin = x.data.begin() + static_cast<std::ptrdiff_t>(first);
    const auto [low, high] = std::minmax_element(begin, begin + 256);
    const double scale = 3 / (double{*high} - *low + 2e-6);
    for (auto i = begin; i != begin + 256; ++i) {
      bias += std::pow((*i - *low) * scale / rounded(scale) + rounded(*low) - *i, 2);
      norm += std::pow(*i, 2);
    }
  }
  CHECK(std::sqrt(bias / norm) == Approx(1.6e-3).epsilon(0.5));  // by the mantissas of the scales
  CHECK(std::sqrt(exact / norm) > 0.3);
}

TEST_CASE("actnn: what compressing a context would do to signs and winners", "[fast]") {
  // specs/mechanisms.md, the trap: what a ReLU leaves of normal numbers. A live unit is lost where
  // its code is that of zero; of windows of 2 x 2 that are not all zeros some choose another
  // winner.
  constexpr std::size_t kSamples = 256, kEdge = 16, kWidth = kEdge * kEdge;
  const auto x = std::make_shared<net::Tensor>(net::Shape{kSamples, kWidth});
  for (std::size_t i = 0; i < x->data.size(); ++i)
    x->data[i] = std::max(0.0f, static_cast<float>(normal_number(i, Stream::probe)));
  net::Graph graph;
  graph.name = "linear";
  graph.inputs = {{"input", {kWidth}}};
  graph.add("fc", std::make_unique<net::Linear>(kWidth, 1), {0});
  net::initialize(graph, 1);
  const auto read_back = [&](const char* format, int group) {
    policies::RecipeNumerics numerics(
        policies::Recipe::make({{"saved", {{"format", format}, {"group", group}}}}, "r", 1), graph);
    const net::Step step{.phase = net::Phase::training};
    const net::Kept kept{"input", net::Use::linear};
    return numerics.restore(step, kept, numerics.save(step, kept, x));
  };
  const auto check = [](double hits, double of, double published, double digits) {
    CAPTURE(hits / of, published);
    const double error = std::sqrt(published * (1 - published) / of);
    CHECK(std::fabs(hits / of - published) <= kErrors * error + digits);
    CHECK(kErrors * error < 0.02);
  };
  const auto lost = [&](const net::Tensor& y, double published, double digits) {
    double live = 0, zeros = 0;
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      live += x->data[i] > 0;
      zeros += x->data[i] > 0 && y.data[i] == 0;
    }
    check(zeros, live, published, digits);
  };
  const net::SharedTensor y = read_back("uint2", 256);
  lost(*y, 0.35, 0.005);
  lost(*read_back("uint2", 16), 0.22, 0.005);
  lost(*read_back("uint4", 256), 0.076, 0.0005);
  double windows = 0, moved = 0;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    for (std::size_t row = 0; row < kEdge; row += 2) {
      for (std::size_t column = 0; column < kEdge; column += 2) {
        const std::size_t first = sample * kWidth + row * kEdge + column;
        std::size_t winner = first, found = first;
        for (const std::size_t i : {first + 1, first + kEdge, first + kEdge + 1}) {
          if (x->data[i] > x->data[winner]) winner = i;
          if (y->data[i] > y->data[found]) found = i;
        }
        windows += x->data[winner] > 0;
        moved += x->data[winner] > 0 && found != winner;
      }
    }
  }
  check(moved, windows, 0.28, 0.005);
}

TEST_CASE("actnn: the gradient of a linear layer, on the specification's case", "[fast]") {
  // 512 inputs, 8 outputs, groups of 256, 2 bits, gradients of lognormal size.
  constexpr std::size_t kSamples = 16, kWidth = 512, kOutputs = 8, kDraws = 400;
  const auto x = std::make_shared<const net::Tensor>(rectified());
  std::vector<double> g(kSamples * kOutputs);
  for (std::size_t i = 0; i < g.size(); ++i)
    g[i] = std::exp(normal_number(i / kOutputs, Stream::data)) * normal_number(i, Stream::init);
  const std::vector<double> variance = context_variance(*x, 256, std::vector<int>(kSamples, 2));
  double predicted = 0;
  for (std::size_t n = 0; n < kSamples; ++n)
    for (std::size_t i = 0; i < kWidth; ++i)
      for (std::size_t k = 0; k < kOutputs; ++k)
        predicted += variance[n * kWidth + i] * g[n * kOutputs + k] * g[n * kOutputs + k];
  net::Graph graph;
  graph.name = "linear";
  graph.inputs = {{"input", {kWidth}}};
  graph.add("fc", std::make_unique<net::Linear>(kWidth, kOutputs), {0});
  net::initialize(graph, 1);
  policies::RecipeNumerics numerics(
      policies::Recipe::make({{"saved", {{"format", "uint2"}, {"group", 256}}}}, "r", 1), graph);
  std::vector<double> squares;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    const net::Step step{.phase = net::Phase::training, .index = static_cast<std::int64_t>(draw)};
    const net::Kept kept{"input", net::Use::linear};
    const net::SharedTensor back = numerics.restore(step, kept, numerics.save(step, kept, x));
    std::vector<double> error(kOutputs * kWidth);
    for (std::size_t n = 0; n < kSamples; ++n)
      for (std::size_t k = 0; k < kOutputs; ++k)
        for (std::size_t i = 0; i < kWidth; ++i)
          error[k * kWidth + i] +=
              g[n * kOutputs + k] * (double{back->data[n * kWidth + i]} - x->data[n * kWidth + i]);
    double square = 0;
    for (const double e : error) square += e * e;
    squares.push_back(square);
  }
  const stats::Mean measured = stats::mean_of(squares);
  CAPTURE(predicted, measured.value, measured.error);
  CHECK(std::fabs(measured.value - predicted) <= kErrors * measured.error);
  CHECK(kErrors * measured.error <= 0.02 * predicted);
}

namespace {

/// The element `place` of the network's input is 1 more in backward.
class Moved final : public net::Numerics {
 public:
  net::SharedTensor restore(const net::Step&, const net::Kept& kept, net::Saved saved) override {
    if (kept.layer != "input") return saved.tensor;
    net::Tensor x = *saved.tensor;
    x.data[place] += 1;
    return std::make_shared<const net::Tensor>(std::move(x));
  }
  std::size_t place = 0;
};

}  // namespace

TEST_CASE("actnn: what an element's error does to the weight of a convolution", "[fast]") {
  constexpr double kFloat = 1e-4;  // gradients are float32 sums
  Sample sample;
  sample.graph.name = "conv";
  sample.graph.inputs = {{"input", {4, 4, 2}}};
  sample.graph.add("conv",
                   std::make_unique<net::Conv2d>(net::Conv2dOptions{.in_channels = 2,
                                                                    .out_channels = 3,
                                                                    .kernel_height = 3,
                                                                    .kernel_width = 3,
                                                                    .stride = 2,
                                                                    .pad = 1}),
                   {0});
  sample.graph.add("flatten", std::make_unique<net::Flatten>());
  sample.graph.add("fc", std::make_unique<net::Linear>(2 * 2 * 3, 5));
  net::initialize(sample.graph, 1);
  sample.x = net::Tensor({3, 4, 4, 2});
  const RandomSource random{.seed = 2, .stream = Stream::probe};
  for (std::size_t i = 0; i < sample.x.data.size(); ++i)
    sample.x.data[i] = static_cast<float>(random.uniform(i));
  sample.labels = {0, 2, 4};
  const Exact exact = exact_pass(sample);
  REQUIRE(exact.reach.at("conv").size() == sample.x.data.size());
  Moved moved;
  for (moved.place = 0; moved.place < sample.x.data.size(); moved.place += 5) {
    CAPTURE(moved.place);
    CHECK(squared_distance(pass(sample, moved)[0], exact.gradients[0]) ==
          Approx(exact.reach.at("conv")[moved.place]).epsilon(kFloat).margin(1e-9));
  }
}

TEST_CASE("actnn: gradients of a network have the variance of their contexts", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  add_variance(actnn_run(folder, {"nets=mlp", "bits=1,2", "gradient_train=64", "gradient_batch=4",
                                  "draws=40"}),
               testing::small_dataset(), conclusion);
  const int layers = 3, settings = 2 + 1;
  CHECK(held(conclusion, "variance") == std::pair(layers * settings, layers * settings));
  CHECK(held(conclusion, "unbiased").first == layers * settings);
  CHECK(held(conclusion, "unbiased").second >= layers * settings - 1);
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == layers * settings);
  // A context that is kept exactly adds nothing; one with another seed adds another noise.
  const Sample sample = sample_of("mlp", testing::small_dataset(), 32, 4, 0);
  policies::RecipeNumerics recipe(
      policies::Recipe::make({{"saved", {{"format", "uint1"}}}}, "r", 0), sample.graph);
  Drawn drawn(recipe);
  const Exact exact = exact_pass(sample);
  CHECK(squared_distance(pass(sample, drawn)[0], exact.gradients[0]) == 0);
  drawn.draws["flatten"] = 1;
  CHECK(squared_distance(pass(sample, drawn)[0], exact.gradients[0]) > 0);
  CHECK(squared_distance(pass(sample, drawn)[2], exact.gradients[2]) == 0);
}

TEST_CASE("actnn: every context's share of the variance is found", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  add_layers(actnn_run(folder, {"gradient_train=64", "gradient_batch=16", "passes=16"}),
             testing::small_dataset(), conclusion);
  CHECK(held(conclusion, "layers add").first == 1);
  CHECK(held(conclusion, "layers alone").first == 1);
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == 5);  // flatten, fc1, relu1, fc2, relu2
  for (const Finding& finding : conclusion.findings) {
    const double error = (finding.high - finding.low) / 2 / stats::kNormal95;
    CAPTURE(finding.what, finding.measured, error);
    // Terms alone leave out products of two noises, which only add.
    CHECK(finding.measured - 1 <= kErrors * error);
    if (finding.claim == "layers add") CHECK(1 - finding.measured <= kErrors * error);
    CHECK(kErrors * error <= 0.12);
  }
}

TEST_CASE("actnn: greedy bits are the optimum of equal sizes alone", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  add_allocation(actnn_run(folder, {"instances=3"}), conclusion);
  CHECK(held(conclusion, "greedy") == std::pair(4, 4));
  CHECK(held(conclusion, "greedy, layers").first == 4);
  CHECK(held(conclusion, "greedy, near").first == 2);
}

TEST_CASE("actnn: bytes are those of the plan, every level trains", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  add_training(actnn_run(folder, {"train_samples=64", "eval_samples=50", "batch=16", "seeds=2"}),
               testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 3);
  CHECK(conclusion.tables[0].rows.size() == 6 + 5);  // minima in bfloat16, in float32
  CHECK(conclusion.tables[1].rows.size() == 5);      // largest batches
  CHECK(conclusion.tables[2].rows.size() == 7);
  // All but greedy bits, whose headers count among 16 small samples.
  CHECK(held(conclusion, "bytes").first == 6 + 5);
  CHECK(held(conclusion, "bytes").second >= 5 + 4);
  CHECK(held(conclusion, "memory").first == 1);
  CHECK(held(conclusion, "memory, float32 minima").first == 1);
  CHECK(held(conclusion, "batch") == std::pair(1, 1));
  CHECK(held(conclusion, "batch, predicted").first == 5);
  CHECK(held(conclusion, "batch, predicted").second >= 4);  // of greedy bits as of bytes
  CHECK(held(conclusion, "accuracy").first == 4);
  CHECK(held(conclusion, "bias").first == 1);
  CHECK(held(conclusion, "other optimizers").first == 0);  // the smallest size has the published
}

}  // namespace actnn_test
