// The role `saved`: which gradients a copy of few bits loses, and the mean of those it keeps.
#include <algorithm>
#include <cmath>
#include <memory>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace role_hooks_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

Recipe saving(const std::string& format, const std::string& rounding = "sr(16)") {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "roles": {"saved": {"format": ")j" + format +
                                R"j(", "rounding": ")j" + rounding + R"j("}}})j",
                            "r");
}

/// Saves as if every gradient were linear in what backward reads.
class AllLinear final : public net::Forwarding {
 public:
  using Forwarding::Forwarding;
  net::Saved save(const net::Step& step, const net::Kept& kept,
                  const net::SharedTensor& tensor) override {
    return Forwarding::save(step, {kept.layer}, tensor);
  }
  net::SharedTensor restore(const net::Step& step, const net::Kept& kept,
                            net::Saved saved) override {
    return Forwarding::restore(step, {kept.layer}, std::move(saved));
  }
};

std::vector<net::Tensor> gradients(const net::Graph& graph, net::Numerics& numerics,
                                   const net::Tensor& x, std::int64_t index = 0) {
  const net::Step step{net::Phase::training, index, nullptr};
  net::Tape tape = net::forward_training(graph, x, numerics, step);
  const net::Shape shape = tape.output.shape;
  return net::backward(graph, std::move(tape), noise(shape, 77), numerics);
}

net::Tensor normal(net::Shape shape) {
  net::Tensor x(std::move(shape));
  RandomSource source;
  source.stream = Stream::vectors;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - source.uniform(2 * i)));
    x.data[i] = static_cast<float>(radius * std::cos(2 * M_PI * source.uniform(2 * i + 1)));
  }
  return x;
}

}  // namespace

TEST_CASE("role saved: no live unit loses its gradient, 35 % would at 2 bits", "[fast]") {
  constexpr std::int64_t kGroups = 64, kWidth = 256;
  net::Graph graph;
  graph.inputs = {{"input", {kGroups, kWidth}}};
  // Of one sample: its gradient is that of the unit.
  graph.add("shift", std::make_unique<net::PositionEmbedding>(kGroups, kWidth));
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("fc", std::make_unique<net::Linear>(kWidth, 4));
  graph.parameters()[1]->value = noise({4, kWidth}, 3);
  const net::Tensor x = normal({1, kGroups, kWidth});
  const auto lost = [&](net::Numerics& numerics) {
    const std::vector<float> by_unit = gradients(graph, numerics, x)[0].data;
    double live = 0, zero = 0;
    for (std::size_t i = 0; i < by_unit.size(); ++i) {
      live += x.data[i] > 0;
      zero += x.data[i] > 0 && by_unit[i] == 0;
    }
    return zero / live;
  };
  struct Case {
    const char* format;
    double lost;
  };
  // 4 standard errors of a share of 8192 units are at most 0.022.
  for (const Case& c :
       {Case{"group(uint2,256,float32,min)", 0.35}, Case{"group(uint2,16,float32,min)", 0.22},
        Case{"group(uint4,256,float32,min)", 0.076}}) {
    INFO(c.format);
    RecipeNumerics by_use(saving(c.format), graph);
    AllLinear all_linear(by_use);
    CHECK(std::fabs(lost(all_linear) - c.lost) < 0.022);
    CHECK(lost(by_use) == 0);
  }
}

TEST_CASE("role saved: gradients are unbiased, unless signs come from a copy", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {16}}};
  graph.add("fc1", std::make_unique<net::Linear>(16, 32));
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("fc2", std::make_unique<net::Linear>(32, 4));
  net::initialize(graph, 0);
  const net::Tensor x = normal({8, 16});
  net::Numerics plain;
  const std::vector<net::Tensor> exact = gradients(graph, plain, x);
  RecipeNumerics by_use(saving("group(uint2,256,float32,min)"), graph);
  AllLinear all_linear(by_use);
  // Per parameter the projection of its gradient on the exact one, as a share of that: how far the
  // mean is from 1, in standard errors. Nothing beyond a float32 rounding of the bias counts.
  const auto deviations = [&](net::Numerics& numerics) {
    constexpr int kDraws = 50;
    constexpr double kRounding = 0x1p-16;
    std::vector<double> sum(exact.size()), squares(exact.size());
    for (int step = 0; step < kDraws; ++step) {
      const std::vector<net::Tensor> drawn = gradients(graph, numerics, x, step);
      for (std::size_t p = 0; p < exact.size(); ++p) {
        double along = 0, length = 0;
        for (std::size_t i = 0; i < exact[p].data.size(); ++i) {
          along += double{drawn[p].data[i]} * exact[p].data[i];
          length += double{exact[p].data[i]} * exact[p].data[i];
        }
        const double error = along / length - 1;
        sum[p] += error;
        squares[p] += error * error;
      }
    }
    std::vector<double> result;
    for (std::size_t p = 0; p < exact.size(); ++p) {
      const double mean = sum[p] / kDraws;
      const double variance = std::max(0.0, squares[p] - sum[p] * mean) / (kDraws - 1);
      result.push_back(std::fabs(mean) / (std::sqrt(variance / kDraws) + kRounding));
    }
    return result;
  };
  for (const double deviation : deviations(by_use)) CHECK(deviation < 4);
  const std::vector<double> biased = deviations(all_linear);
  CHECK(biased[0] > 20);  // the weight before the ReLU
  CHECK(biased[1] > 20);  // and its bias
  CHECK(biased[2] < 4);   // the weight behind it
}

TEST_CASE("role saved: signs take 2 bits, indices and statistics stay as they are", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {4}}};
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  RecipeNumerics numerics(saving("int4", "rne"), graph);
  const auto tensor = std::make_shared<const net::Tensor>(noise({3, 5}, 1));
  const net::Step step{net::Phase::training};
  for (const net::Use use : {net::Use::index, net::Use::statistic}) {
    const net::Kept kept{"relu", use};
    CHECK(numerics.restore(step, kept, numerics.save(step, kept, tensor)) == tensor);
  }
  const net::Saved signs = numerics.save(step, {"relu", net::Use::sign}, tensor);
  CHECK(signs.tensor == nullptr);
  CHECK(signs.packed.size() == 4);
  const net::SharedTensor restored = numerics.restore(step, {"relu", net::Use::sign}, signs);
  for (std::size_t i = 0; i < tensor->data.size(); ++i)
    CHECK(restored->data[i] == (tensor->data[i] > 0 ? 1 : -1));
  // No role for the network's input.
  CHECK(numerics.save(step, {"input"}, tensor).tensor == tensor);
}

}  // namespace role_hooks_test
