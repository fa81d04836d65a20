// The elements that the products of a layer read under masks.
#include "policies/recipe/masked_operands.hpp"

#include <array>
#include <map>

#include "emu/net/ops/conv2d.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/lstm.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/recipe/by_hand.hpp"

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;
using net::Role;

namespace {

std::unique_ptr<RecipeLayer> masked_layer(const char* weight, const char* activation,
                                          const char* dgrad, const char* wgrad) {
  const auto mask = [](const char* text) -> std::optional<MaskPolicy> {
    if (*text == 0) return std::nullopt;
    return parse_mask(text);
  };
  LayerRecipe recipe = layer_recipe(std::nullopt, "f32.sequential");
  recipe.weight_mask = mask(weight);
  recipe.activation_mask = mask(activation);
  recipe.gradient_dgrad_mask = mask(dgrad);
  recipe.gradient_wgrad_mask = mask(wgrad);
  auto layer = std::make_unique<RecipeLayer>(recipe);
  if (recipe.weight_mask)
    layer->weight_mask = std::make_unique<WeightMask>(
        *recipe.weight_mask, weight_mask_random(7, "layer", *recipe.weight_mask));
  return layer;
}

/// The most non-zero elements in `group` neighbours along the depth of an operand.
std::int64_t most_kept(const net::ProductSide& side, const net::Product& p, std::int64_t rows,
                       std::int64_t group) {
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < p.d_stack.count(); ++b) {
    const std::vector<float> m =
        gathered(side, b, rows, p.k, 0.0f, [&](std::int64_t e) { return side.source->data[e]; });
    for (std::int64_t g = 0; g < rows * p.k; g += group) {
      std::int64_t kept = 0;
      for (std::int64_t i = g; i < g + group; ++i) kept += m[i] != 0;
      most = std::max(most, kept);
    }
  }
  return most;
}

/// What every product of a step reads, and that its result is the product of it.
class Reader : public net::Numerics {
 public:
  explicit Reader(std::unique_ptr<RecipeLayer> layer) : layer_(std::move(layer)) {}
  void product(const net::Step& step, const net::Product& p) override {
    const MaskedOperands masked(*layer_, p, run);
    const net::Product& read = masked.product();
    sources[{p.kind, p.a.role}] = read.a.source->data;
    sources[{p.kind, p.b.role}] = read.b.source->data;
    most[{p.kind, p.a.role}] = p.k % 4 == 0 ? most_kept(read.a, read, p.m, 4) : -1;
    most[{p.kind, p.b.role}] = p.k % 4 == 0 ? most_kept(read.b, read, p.n, 4) : -1;
    net::Numerics::product(step, read);
    const std::vector<float> expected(p.d, p.d + p.d_stack.count() * p.m * p.n);
    run_product(*layer_, p, run);
    CHECK(differences({p.d, p.d + expected.size()}, expected) == 0);
  }

  using Key = std::pair<GemmKind, Role>;
  std::map<Key, std::vector<float>> sources;
  std::map<Key, std::int64_t> most;
  ProductRun run{.seed = 7, .phase = net::Phase::training, .step = 3};

 private:
  std::unique_ptr<RecipeLayer> layer_;
};

/// Linear layers, convolutions and grouped ones: `check` sees what each read.
template <class Check>
void for_each_op(const char* weight, const char* activation, const char* dgrad, const char* wgrad,
                 const Check& check) {
  const auto one = [&](net::Op& op, const net::Shape& shape) {
    Reader reader(masked_layer(weight, activation, dgrad, wgrad));
    run_op(op, shape, reader);
    check(reader);
  };
  net::Linear linear(16, 8, false);
  one(linear, {8, 16});
  net::Conv2dOptions options{.in_channels = 8,
                             .out_channels = 12,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .pad = 1,
                             .bias = false};
  net::Conv2d conv(options);
  one(conv, {2, 4, 4, 8});
  options.groups = 2;
  options.out_channels = 8;
  net::Conv2d grouped(options);
  one(grouped, {2, 4, 4, 8});
}

constexpr std::pair kFprop(GemmKind::fprop, Role::weight), kDgrad(GemmKind::dgrad, Role::weight);
constexpr std::pair kForward(GemmKind::fprop, Role::activation),
    kUpdate(GemmKind::wgrad, Role::activation), kBack(GemmKind::dgrad, Role::gradient),
    kLeft(GemmKind::wgrad, Role::gradient);

}  // namespace

TEST_CASE("masked operands: a weight has one mask, along the depth of fprop", "[fast]") {
  for_each_op("greedy(2:4)", "", "", "", [](const Reader& r) {
    CHECK(r.most.at(kFprop) == 2);
    CHECK(r.most.at(kDgrad) > 2);
    CHECK(r.sources.at(kFprop) == r.sources.at(kDgrad));
    CHECK(r.most.at(kLeft) == 4);
  });
  for_each_op("transposable(2:4)", "", "", "", [](const Reader& r) {
    CHECK(r.most.at(kFprop) == 2);
    CHECK(r.most.at(kDgrad) == 2);
    CHECK(r.sources.at(kFprop) == r.sources.at(kDgrad));
  });
}

TEST_CASE("masked operands: an activation has one mask, along its channels", "[fast]") {
  for_each_op("", "greedy(2:4)", "", "", [](const Reader& r) {
    CHECK(r.most.at(kForward) == 2);
    CHECK(r.sources.at(kForward) == r.sources.at(kUpdate));
  });
}

TEST_CASE("masked operands: a gradient is masked for the product that reads it", "[fast]") {
  for_each_op("", "", "greedy(2:4)", "greedy(2:4)", [](const Reader& r) {
    CHECK(r.most.at(kBack) <= 2);
    CHECK(r.most.at(kLeft) == 2);
    CHECK(r.sources.at(kBack) != r.sources.at(kLeft));
  });
  // Along one axis the same draws leave the same tensor to both.
  for (const char* mask : {"mvue(2:4,axis=batch)", "greedy(1:2,axis=batch)", "stochastic(0.7)"}) {
    for_each_op("", "", mask, mask, [](const Reader& r) {
      CHECK(r.sources.at(kBack) == r.sources.at(kLeft));
      CHECK(std::count(r.sources.at(kLeft).begin(), r.sources.at(kLeft).end(), 0.0f) > 0);
    });
  }
  for_each_op("", "", "", "mvue(1:2)", [](const Reader& r) {
    CHECK(r.most.at(kBack) >= 3);
    CHECK(r.most.at(kLeft) == 2);
  });
}

TEST_CASE("masked operands: each mask has its own threshold", "[fast]") {
  const auto zeros = [](const std::vector<float>& x) {
    return std::count(x.begin(), x.end(), 0.0f);
  };
  const auto counted = [&](const char* activation, const char* dgrad, const char* wgrad) {
    Reader reader(masked_layer("", activation, dgrad, wgrad));
    net::Linear linear(16, 16, false);
    run_op(linear, {16, 16}, reader);
    return std::array{zeros(reader.sources.at(kForward)), zeros(reader.sources.at(kBack)),
                      zeros(reader.sources.at(kLeft))};
  };
  const std::int64_t few = counted("", "hard(0.2)", "")[1], many = counted("", "hard(0.9)", "")[1];
  REQUIRE(few < many);
  CHECK(counted("", "hard(0.2)", "hard(0.9)") == std::array<std::int64_t, 3>{0, few, many});
  CHECK(counted("", "hard(0.9)", "hard(0.2)") == std::array<std::int64_t, 3>{0, many, few});
  const auto three = counted("hard(0.2)", "hard(0.9)", "hard(0.9)");
  CHECK((three[1] == many && three[2] == many && three[0] > 0));
}

TEST_CASE("masked operands: a recurrence refuses what its products do not share", "[fast]") {
  const auto run = [](const char* activation, const char* dgrad, const char* wgrad) {
    Reader reader(masked_layer("", activation, dgrad, wgrad));
    net::Lstm lstm(8, 8);
    for (net::Parameter& parameter : lstm.parameters())
      parameter.value = noise(parameter.value.shape, 1);
    const net::Tensor x = noise({4, 5, 8}, 2);
    const std::vector<const net::Tensor*> inputs = {&x};
    const std::vector<net::Shape> shapes = {x.shape};
    net::Tensor y(lstm.output_shape(shapes)), context;
    const net::OpCall call{.layer = "layer",
                           .numerics = reader,
                           .phase = net::Phase::training,
                           .context = &context,
                           .kept = &context};
    lstm.forward(call, inputs, y);
    const net::Tensor g = noise(y.shape, 3);
    std::vector<net::Tensor> grad_inputs{net::Tensor(x.shape)}, grad_parameters;
    for (const net::Parameter& parameter : lstm.parameters())
      grad_parameters.emplace_back(parameter.value.shape);
    lstm.backward(call, inputs, &y, g, grad_inputs, grad_parameters, true);
  };
  CHECK_THROWS_WITH(run("", "", "greedy(2:4)"), Contains("leaves out rows"));
  CHECK_NOTHROW(run("", "greedy(2:4)", ""));
  CHECK_NOTHROW(run("greedy(2:4)", "", ""));
}

TEST_CASE("masked operands: draws change with the step, the weights' do not", "[fast]") {
  const auto sources = [](std::int64_t step) {
    Reader reader(masked_layer("random(2:4)", "random(2:4)", "", "mvue(1:2)"));
    reader.run.step = step;
    net::Linear linear(16, 8, false);
    run_op(linear, {8, 16}, reader);
    return reader.sources;
  };
  auto first = sources(0), second = sources(1);
  CHECK(first.at(kFprop) == second.at(kFprop));
  CHECK(first.at(kForward) != second.at(kForward));
  CHECK(first.at(kLeft) != second.at(kLeft));
}

TEST_CASE("masked operands: what dgrad gives is pruned where it is asked", "[fast]") {
  const auto layer = masked_layer("", "", "hard(0.7,at=input)", "");
  const net::Tensor g = noise({6, 8}, 1), w = noise({8, 4}, 2);
  net::Tensor d({6, 4});
  const unit::Gather a = unit::Gather::matrix(6, 8), b = unit::Gather::matrix(4, 8, true);
  const net::Product product{"layer",
                             GemmKind::dgrad,
                             6,
                             4,
                             8,
                             {&g, &a, Role::gradient, {.width = 8}},
                             {&w, &b, Role::weight, {.width = 4}, true},
                             d.data.data(),
                             {.width = 4}};
  net::Numerics dense;
  dense.product({}, product);
  const std::vector<float> whole = d.data;
  run_product(*layer, product, {.seed = 7, .phase = net::Phase::training});
  std::int64_t pruned = 0;
  float smallest = 1e30f, largest_pruned = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK((d.data[i] == whole[i] || d.data[i] == 0));
    pruned += d.data[i] == 0;
    if (d.data[i] == 0) largest_pruned = std::max(largest_pruned, std::abs(whole[i]));
    if (d.data[i] != 0) smallest = std::min(smallest, std::abs(whole[i]));
  }
  CHECK(pruned > 8);
  CHECK(pruned < 24);
  CHECK(largest_pruned < smallest);
}

TEST_CASE("masked operands: in inference a sample does not see its neighbours", "[fast]") {
  const net::Tensor x = noise({6, 16}, 4), w = noise({8, 16}, 5);
  const unit::Gather b = unit::Gather::matrix(8, 16);
  const auto results = [&](const char* mask, std::int64_t at_once) {
    const auto layer = masked_layer("", mask, "", "");
    std::vector<float> all;
    for (std::int64_t first = 0; first < 6; first += at_once) {
      net::Tensor part({at_once, 16}), d({at_once, 8});
      std::copy_n(x.data.begin() + first * 16, part.size(), part.data.begin());
      const unit::Gather a = unit::Gather::matrix(at_once, 16);
      run_product(*layer,
                  {"layer",
                   GemmKind::fprop,
                   at_once,
                   8,
                   16,
                   {&part, &a, Role::activation, {.width = 16}},
                   {&w, &b, Role::weight, {.width = 16}},
                   d.data.data(),
                   {.width = 8}},
                  {.seed = 7, .first_sample = first});
      all.insert(all.end(), d.data.begin(), d.data.end());
    }
    return all;
  };
  for (const char* mask :
       {"greedy(2:4)", "random(2:4)", "mvue(1:2)", "stochastic(0.5)", "unstructured(0.5)"}) {
    INFO(mask);
    const std::vector<float> whole = results(mask, 6);
    CHECK(results(mask, 1) == whole);
    CHECK(results(mask, 3) == whole);
  }
}

TEST_CASE("masked operands: a tail is refused with the mask and its length", "[fast]") {
  Reader reader(masked_layer("greedy(2:4)", "", "", ""));
  net::Linear linear(6, 8, false);
  CHECK_THROWS_WITH(run_op(linear, {4, 6}, reader),
                    Contains("mask greedy(2:4)") && Contains("found 6"));
}
