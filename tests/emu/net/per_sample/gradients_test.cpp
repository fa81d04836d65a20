// Gradients of single samples: factored and whole beside those of passes of one sample, and closed
// forms of rounded operands beside draws.
#include "emu/net/per_sample/gradients.hpp"

#include <cmath>

#include "emu/net/backward.hpp"
#include "emu/net/data/dataset.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/per_sample/laws.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/glyphs_cache.hpp"

namespace numemu::gradients_test {

using namespace numemu::net;
using namespace numemu::net::per_sample;
using numemu::test::TemporaryFolder;

Dataset glyphs(const TemporaryFolder& folder) {
  const std::string cache = folder / "cache";
  numemu::test::share_glyphs(cache);
  return load_dataset("glyphs", cache);
}

Graph fresh(const char* name, const Dataset& data) {
  Graph graph = build_net(name, data);
  initialize(graph, 5);
  return graph;
}

/// Of all parameters, by a pass of the sample alone.
std::vector<Tensor> whole_gradient(const Graph& graph, const Dataset& data, std::int64_t sample) {
  Targets targets;
  const Tensor x = data.train_batch({sample}, targets);
  Numerics float32;
  Tape tape = forward_training(graph, x, float32, {.phase = Phase::training}, 0);
  Tensor gradient;
  cross_entropy(tape.output, targets.classes, &gradient, 1);
  return backward(graph, std::move(tape), std::move(gradient), float32);
}

TEST_CASE("gradients of samples are those of passes of one sample", "[fast]") {
  const TemporaryFolder folder;
  const Dataset data = glyphs(folder);
  constexpr std::int64_t kSamples = 4;
  const Batch batch = first_of_training(data, kSamples);
  for (const char* name : {"mlp", "lenet"}) {
    INFO(name);
    const Graph graph = fresh(name, data);
    const std::vector<LayerOperands> operands = operands_of(graph, batch);
    CHECK(all_factored(operands) == (std::string(name) == "mlp"));
    const SampleGradients gradients(operands, {});
    REQUIRE(gradients.samples() == kSamples);
    std::vector<std::vector<Tensor>> whole;
    for (std::int64_t i = 0; i < kSamples; ++i) whole.push_back(whole_gradient(graph, data, i));
    for (std::int64_t i = 0; i < kSamples; ++i) {
      for (std::int64_t j = 0; j < kSamples; ++j) {
        double dot = 0, scale = 0;
        for (std::size_t p = 0; p < whole[0].size(); ++p) {
          const Tensor &a = whole[static_cast<std::size_t>(i)][p],
                       &b = whole[static_cast<std::size_t>(j)][p];
          for (std::size_t e = 0; e < a.data.size(); ++e) {
            dot += double{a.data[e]} * double{b.data[e]};
            scale += std::fabs(double{a.data[e]} * double{b.data[e]});
          }
        }
        CHECK(std::fabs(gradients.dot(i, gradients, j) - dot) <= 1e-5 * scale);
      }
    }
  }
}

TEST_CASE("one draw is biased by the closed form, two draws are not", "[fast]") {
  const TemporaryFolder folder;
  const Dataset data = glyphs(folder);
  const Rounding sr = {.mode = RoundingMode::sr, .random_bits = 16};
  const Format& format = find_format("int4");
  for (const char* name : {"mlp", "lenet"}) {
    INFO(name);
    const std::vector<LayerOperands> operands =
        operands_of(fresh(name, data), first_of_training(data, 2));
    const SampleGradients exact(operands, {});
    const double square = exact.dot(1, exact, 1), bias = one_draw_bias(operands, format, sr, 1);
    CHECK(bias > 0.01 * square);
    const GradientLaws law(operands, format, sr, 2);
    const SelfLaw self = law.self(1);
    CHECK(self.one.mean == Approx(square + bias));
    CHECK(self.two.mean == Approx(square));
    if (all_factored(operands)) {
      CHECK(law.two(1, law, 1).mean == Approx(square));
      CHECK(law.two(1, law, 1).variance == Approx(self.two.variance));
      CHECK(law.two(0, law, 1).mean == Approx(exact.dot(0, exact, 1)));
    }
    constexpr int kDraws = 60;
    double once = 0, once_squares = 0, twice = 0, twice_squares = 0;
    for (int d = 0; d < kDraws; ++d) {
      const auto number = static_cast<std::uint16_t>(2 * d);
      const SampleGradients a(operands, {&format, sr, 3, 0, number}),
          b(operands, {&format, sr, 3, 0, static_cast<std::uint16_t>(number + 1)});
      const double one = a.dot(1, a, 1) - square - bias, two = a.dot(1, b, 1) - square;
      once += one;
      once_squares += one * one;
      twice += two;
      twice_squares += two * two;
    }
    CHECK(std::fabs(once) < 4 * std::sqrt(once_squares));
    CHECK(std::fabs(twice) < 4 * std::sqrt(twice_squares));
    CHECK(bias * kDraws > 4 * std::sqrt(once_squares));
    // A sample variance is off by sqrt(2 / n); of convolutions the law is one to first order.
    const double off = 4 * std::sqrt(2.0 / kDraws);
    CHECK(once_squares / kDraws == Approx(self.one.variance).epsilon(off));
    CHECK(twice_squares / kDraws == Approx(self.two.variance).epsilon(off));
  }
}

TEST_CASE("networks whose samples depend on each other are refused", "[fast]") {
  const TemporaryFolder folder;
  const Dataset data = glyphs(folder);
  CHECK_NOTHROW(require_separable(fresh("lenet", data), "--set: nets"));
  CHECK_THROWS_WITH(require_separable(fresh("mlp-bn", data), "--set: nets"),
                    Catch::Contains("--set: nets: mlp-bn: layer bn1 (batch_norm) normalises"));
}

}  // namespace numemu::gradients_test
