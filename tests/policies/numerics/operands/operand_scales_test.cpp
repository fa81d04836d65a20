// Scales of lines, columns and samples, applied with one rounding each.
#include "policies/numerics/operands/operand_scales.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/views.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace operand_scales_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using ScaleKind = OperandScales::Kind;

TEST_CASE("lines and columns of every matrix meet their scales", "[fast]") {
  // D [outer 2, m 3, inner 2, n 4].
  net::Tensor d = noise({2, 3, 2, 4}, 1);
  const net::Tensor before = d, lines = noise({12}, 2), columns = noise({16}, 3);
  net::Product p;
  p.m = 3;
  p.n = 4;
  p.d = d.data.data();
  p.d_stack = {.outer = 2, .inner = 2, .width = 4};
  apply_scales(p, {ScaleKind::line, lines.data, 1}, {ScaleKind::column, columns.data, 4});
  for (std::int64_t i = 0; i < d.size(); ++i) {
    const std::int64_t outer = i / 24, inner = i / 4 % 2;
    const float alpha = lines.data[i / 4] * columns.data[(outer * 2 + inner) * 4 + i % 4];
    CHECK(d.data[i] == before.data[i] * alpha);
  }
  d = before;
  p.d = d.data.data();
  apply_scales(p, {ScaleKind::one, {3.0f}, 1}, {});
  CHECK(d.data[5] == before.data[5] * 3);
  apply_scales(p, {}, {});
  CHECK(d.data[5] == before.data[5] * 3);
}

TEST_CASE("samples share the lines of D equally where they have lines of their own", "[fast]") {
  const net::Tensor x({6, 4, 8}), w({5, 8});
  const unit::Gather g;
  net::Product p;
  p.m = 24;
  p.n = 5;
  p.k = 8;
  p.a = {&x, &g, net::Role::activation, {.width = 8}};
  p.b = {&w, &g, net::Role::weight, {.width = 8}};
  p.d_stack = {.width = 5};
  CHECK(separable_samples(p, net::Side::a) == 6);
  CHECK(separable_samples(p, net::Side::b) == 1);
  p.a.along_rows = true;
  CHECK(separable_samples(p, net::Side::a) == 1);
  const OperandScales scales = sample_scales(p, {1, 2, 3, 4, 5, 6});
  REQUIRE(scales.values.size() == 24);
  CHECK(scales.values[3] == 1);
  CHECK(scales.values[4] == 2);
  CHECK(sample_scales(p, {7}).kind == ScaleKind::one);
}

TEST_CASE("arrays that are one sample have one scale, those of several samples one each",
          "[fast]") {
  constexpr std::int64_t kRows = 3, kWidth = 4;
  const auto network = [&](bool whole) {
    net::Graph graph;
    graph.inputs = {{"input", whole ? net::Shape{kRows, kWidth} : net::Shape{kWidth}}};
    if (whole) graph.add("sample", std::make_unique<net::Reshape>(net::Shape{kRows, kWidth}));
    graph.add("fc", std::make_unique<net::Linear>(kWidth, kWidth));
    net::Tensor& weight = graph.parameters().front()->value;
    for (std::int64_t i = 0; i < kWidth; ++i) weight.data[i * (kWidth + 1)] = 1;
    if (whole) graph.add("back", std::make_unique<net::Reshape>(net::Shape{1, kRows, kWidth}));
    return graph;
  };
  const Recipe recipe = Recipe::parse_text(
      R"({"numemu_recipe": 1, "calibrate": {"rule": "dynamic"},
          "roles": {"activation": {"format": "int8", "scale": "absmax"}}})",
      "recipe");
  // Each row is ten times as large as the one before.
  std::vector<float> x;
  for (std::int64_t i = 0; i < kRows * kWidth; ++i)
    x.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i)) *
                                   std::pow(10.0, static_cast<double>(i / kWidth))));
  for (const bool whole : {true, false}) {
    INFO(whole);
    const net::Graph graph = network(whole);
    CHECK(takes_one_sample(graph) == whole);
    net::Tensor input(whole ? net::Shape{1, kRows, kWidth} : net::Shape{kRows, kWidth});
    input.data = x;
    RecipeNumerics numerics(recipe, graph);
    numerics.freeze(graph, float_reference(graph, input));
    const net::Tensor y = net::forward(graph, input, numerics);
    // A mask of half of the elements: those of the whole, or of each sample.
    RecipeNumerics masked(
        Recipe::parse_text(
            R"j({"numemu_recipe": 1, "roles": {"activation": {"mask": "unstructured(0.5)"}}})j",
            "recipe"),
        graph);
    masked.freeze(graph, float_reference(graph, input));
    const std::vector<float> kept = net::forward(graph, input, masked).data;
    const auto zeros = [&](std::int64_t row) {
      return std::count(kept.begin() + row * kWidth, kept.begin() + (row + 1) * kWidth, 0.0f);
    };
    CHECK(zeros(0) == (whole ? kWidth : kWidth / 2));  // the smallest numbers of all
    CHECK(zeros(0) + zeros(1) + zeros(2) == kRows * kWidth / 2);
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto first = whole ? x.begin() : x.begin() + row * kWidth,
                 last = whole ? x.end() : first + kWidth;
      float largest = 0;
      for (auto at = first; at < last; ++at) largest = std::max(largest, std::fabs(*at));
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const double steps = 127 * double{y.data[row * kWidth + c]} / largest,
                     exact = 127 * double{x[row * kWidth + c]} / largest;
        CHECK(std::fabs(steps - std::nearbyint(steps)) < 127 * 0x1p-21);  // three roundings
        CHECK(std::fabs(steps - exact) < 0.5 + 127 * 0x1p-21);
      }
    }
  }
}

}  // namespace operand_scales_test
