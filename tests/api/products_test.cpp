// Products of another framework beside those of our own networks: the same operands, the same bits.
#include "api/products.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/conv.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"

namespace products_test {

using namespace numemu;
using api::ForeignLayer, api::ProductCall, api::ProductMode, api::Products;
using Catch::Contains;
using net::GemmKind, net::Graph, net::Tensor;

namespace {

constexpr std::int64_t kSamples = 6;

/// A product that a network asked for, and what it got.
struct Asked {
  std::string layer;
  GemmKind kind;
  Tensor a, b;
  std::vector<float> d;
};

/// Records every product of the numerics below it.
class Recorder final : public net::Forwarding {
 public:
  using Forwarding::Forwarding;
  void product(const net::Step& step, const net::Product& p) override {
    Forwarding::product(step, p);
    const std::int64_t size = p.d_stack.count() * p.m * p.n;
    asked.push_back({std::string(p.layer), p.kind, *p.a.source, *p.b.source, {p.d, p.d + size}});
  }
  std::vector<Asked> asked;
};

Tensor pattern(const net::Shape& shape, float phase) {
  Tensor x(shape);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] =
        static_cast<float>(static_cast<int>((i * 37 + static_cast<int>(phase * 11)) % 101) - 50) /
        50;
  return x;
}

Tensor view(const Tensor& x) { return Tensor::borrowed(x.shape, x.data.data()); }

/// The layers of a network of convolutions and linear layers; the shapes are those of `asked`.
std::vector<ForeignLayer> layers_of(const Graph& graph, const std::vector<Asked>& asked) {
  std::vector<ForeignLayer> layers;
  for (const net::Node& node : graph.nodes) {
    if (node.op->products().empty()) continue;
    ForeignLayer& layer = layers.emplace_back();
    layer.name = node.name;
    layer.weight = std::as_const(*node.op).parameters()[0].value;
    if (const auto* conv = dynamic_cast<const net::Conv*>(node.op.get())) {
      layer.kind = ForeignLayer::Kind::conv;
      layer.conv = conv->options();
    }
    for (const Asked& product : asked) {
      if (product.layer == node.name && product.kind == GemmKind::fprop)
        layer.left = {product.a.shape};
    }
  }
  return layers;
}

bool same_bits(std::span<const float> x, std::span<const float> y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("products of training have the bits of a network's under the recipe", "[fast]") {
  const std::string file = GENERATE("e4m3-e5m2-chunked", "mxfp8-train", "fp8-current", "hfp8");
  CAPTURE(file);
  const api::Recipe recipe = api::open_recipe(file, {NUMEMU_SOURCE "/data", ""});
  Graph graph = net::build_net("lenet", {20, 20, 2}, 5);
  net::initialize(graph, 1);
  policies::RecipeNumerics numerics(recipe, graph);
  std::unique_ptr<Products> products;
  for (std::int64_t index = 0; index < 3; ++index) {
    Recorder recorder(numerics);
    const net::Step step{.phase = net::Phase::training, .index = index};
    numerics.begin_step(step);
    net::Tape tape =
        net::forward_training(graph, pattern({kSamples, 20, 20, 2}, 1.0f + index), recorder, step);
    net::backward(graph, std::move(tape), pattern({kSamples, 5}, 0.5f), recorder);
    numerics.end_step(step);
    if (products == nullptr)
      products = std::make_unique<Products>(recipe, layers_of(graph, recorder.asked), kSamples);
    std::map<std::string, Tensor> lefts;
    products->begin_step(index);
    for (const Asked& asked : recorder.asked) {
      CAPTURE(index, asked.layer, net::to_string(asked.kind));
      const auto& layers = products->layers();
      const auto at = std::ranges::find(layers, asked.layer, &ForeignLayer::name);
      const ProductCall call{.layer = static_cast<std::size_t>(at - layers.begin()),
                             .mode = ProductMode::training,
                             .step = index};
      if (asked.kind == GemmKind::fprop) {
        lefts[asked.layer] = asked.a;
        CHECK(same_bits(products->forward(call, view(asked.a), view(asked.b)).data, asked.d));
        continue;
      }
      const Tensor& weight = net::weight_of(graph, asked.layer);
      const bool left = asked.kind == GemmKind::dgrad;
      const api::ProductGradients gradients = products->backward(
          call, view(lefts.at(asked.layer)), view(weight), view(asked.a), left, !left);
      CHECK(same_bits((left ? gradients.left : gradients.right).data, asked.d));
    }
    products->end_step(index);
    for (net::Parameter* parameter : graph.parameters()) {
      for (float& w : parameter->value.data) w = w * 0.97f + 0.001f;
    }
  }
}

TEST_CASE("frozen products have the bits of a frozen network", "[fast]") {
  const std::string file = GENERATE("int8-static", "fp8-e4m3-h100", "nvfp4");
  CAPTURE(file);
  const api::Recipe recipe = api::open_recipe(file, {NUMEMU_SOURCE "/data", ""});
  Graph graph = net::build_net("lenet", {20, 20, 2}, 5);
  net::initialize(graph, 2);
  const Tensor x = pattern({kSamples, 20, 20, 2}, 3);
  policies::RecipeNumerics numerics(recipe, graph);
  Recorder recorder(numerics);
  net::Numerics float32;
  Recorder clean(float32);
  net::forward(graph, x, clean);
  numerics.freeze(graph, policies::float_reference(graph, x));
  const std::vector<std::int64_t> samples{0};
  net::forward(graph, x, recorder, {.samples = &samples});
  Products products(recipe, layers_of(graph, clean.asked), kSamples);
  products.freeze(kSamples, [&](std::int64_t, std::int64_t) {
    for (std::size_t i = 0; i < clean.asked.size(); ++i)
      products.forward({.layer = i, .mode = ProductMode::reference}, clean.asked[i].a,
                       view(clean.asked[i].b));
  });
  for (std::size_t i = 0; i < recorder.asked.size(); ++i) {
    CAPTURE(recorder.asked[i].layer);
    const auto y = products.forward({.layer = i}, recorder.asked[i].a, view(recorder.asked[i].b));
    CHECK(same_bits(y.data, recorder.asked[i].d));
    // Weights that changed are quantized anew.
    Tensor other = recorder.asked[i].b;
    for (float& w : other.data) w = -w;
    CHECK(!same_bits(products.forward({.layer = i}, recorder.asked[i].a, view(other)).data,
                     recorder.asked[i].d));
    CHECK(same_bits(
        products.forward({.layer = i}, recorder.asked[i].a, view(recorder.asked[i].b)).data,
        recorder.asked[i].d));
  }
}

TEST_CASE("products name the layer and what does not fit", "[fast]") {
  const Tensor x = pattern({2, 3}, 1), w = pattern({4, 3}, 2);
  const auto layers = [&] {
    std::vector<ForeignLayer> one(1);
    one[0].name = "fc";
    one[0].weight = w;
    one[0].left = {{2, 3}};
    return one;
  };
  CHECK_THROWS_WITH(
      Products(api::make_recipe({{"layers", Json::array({{{"match", "conv*"}}})}}), layers(), 2),
      Contains("conv*"));
  CHECK_THROWS_WITH(Products({}, {}, 2), Contains("no layer multiplies"));
  Products products({}, layers(), 2);
  products.freeze(0, nullptr);
  CHECK_THROWS_WITH(products.forward({}, pattern({2, 5}, 1), view(w)), Contains("layer fc"));
  CHECK_THROWS_WITH(products.forward({}, x, view(x)), Contains("expected a weight [4, 3]"));
  CHECK(products.ignored().empty());
  Products saved(api::make_recipe({{"roles", {{"saved", {{"format", "int8"}}}}}}), layers(), 2);
  CHECK(saved.ignored() == std::vector<std::string>{"roles.saved"});
}

}  // namespace products_test
