// Scales of tokens and channels of the right operands of attention, however the tensor lies.
#include "policies/numerics/operands/scale_groups.hpp"

#include "emu/net/ops/matmul.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_product.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace scale_groups_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using net::Role;

namespace {

/// Products of a layer after freeze().
struct FrozenLayer : net::Numerics {
  explicit FrozenLayer(LayerState& l) : layer(l) {}
  void product(const net::Step&, const net::Product& p) override {
    run_product(layer, p, {.frozen = true});
  }
  LayerState& layer;
};

constexpr std::int64_t kBatch = 2, kTokens = 5, kHeads = 2, kDepth = 3;

/// Runs one product of attention with quantized right operands and against the same operand
/// dequantized by hand, each scale that of the elements with the same key(b, token, head, channel).
struct Attention {
  Role right;
  Granularity granularity;
  bool transposed;  ///< numpy's matrices, the right operand as [k, n]
  const char* unit = "f32.sequential";

  net::Tensor right_tensor() const {
    const net::Shape heads = {kBatch, kTokens, kHeads * kDepth};
    if (!transposed) return noise(heads, 2);
    return noise(right == Role::key ? net::Shape{kBatch, kDepth, kTokens}
                                    : net::Shape{kBatch, kTokens, kDepth},
                 2);
  }
  /// Which of the scales an element has.
  std::int64_t group(std::int64_t i) const {
    std::int64_t b, token, head = 0, channel;
    if (!transposed) {
      b = i / (kTokens * kHeads * kDepth);
      token = i / (kHeads * kDepth) % kTokens;
      head = i / kDepth % kHeads;
      channel = i % kDepth;
    } else if (right == Role::key) {
      b = i / (kTokens * kDepth);
      token = i % kTokens;
      channel = i / kTokens % kDepth;
    } else {
      b = i / (kTokens * kDepth);
      token = i / kDepth % kTokens;
      channel = i % kDepth;
    }
    return (b * kHeads + head) * 100 + (granularity == Granularity::row ? token : channel);
  }
  net::Tensor dequantized(const RoleQuantizer& q, const net::Tensor& x) const {
    net::Tensor y = x;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      float most = 0;
      for (std::int64_t j = 0; j < x.size(); ++j)
        if (group(j) == group(i)) most = std::max(most, std::fabs(x.data[j]));
      const float scale = absmax_scale(most, q.conversion());
      quantize_values_reference(q.conversion(), &x.data[i], 1, scale, &y.data[i]);
    }
    return y;
  }
  net::Tensor run(LayerState& layer, const net::Tensor& b) const {
    FrozenLayer numerics(layer);
    const bool scores = right == Role::key;
    const net::MatMul op({.heads = transposed ? 0 : kHeads, .transpose_b = !transposed && scores});
    const net::Tensor a =
        noise(transposed ? (scores ? net::Shape{kBatch, 4, kDepth} : net::Shape{kBatch, 4, kTokens})
              : scores   ? net::Shape{kBatch, 4, kHeads * kDepth}
                         : net::Shape{kBatch, kHeads, 4, kTokens},
              1);
    const std::vector<const net::Tensor*> inputs = {&a, &b};
    const std::vector<net::Shape> shapes = {a.shape, b.shape};
    net::Tensor y(op.output_shape(shapes));
    op.forward({.layer = "attention", .numerics = numerics}, inputs, y);
    return y;
  }
};

LayerRecipe recipe_of(const std::optional<RolePolicy>& policy, const char* unit) {
  LayerRecipe recipe = layer_recipe(std::nullopt, unit);
  recipe[RolePart::key] = recipe[RolePart::value] = policy;
  recipe.given[RolePart::key] = recipe.given[RolePart::value] = true;
  return recipe;
}

}  // namespace

TEST_CASE("keys and values per token and per channel, in both layouts", "[fast]") {
  for (const Role right : {Role::key, Role::value}) {
    for (const Granularity granularity : {Granularity::row, Granularity::channel}) {
      for (const bool transposed : {false, true}) {
        const Attention attention{right, granularity, transposed};
        INFO(net::to_string(right)
             << (granularity == Granularity::row ? " row" : " channel") << transposed);
        const RolePolicy policy = element_policy("int4", granularity);
        LayerState layer(recipe_of(policy, "f32.sequential"), right);
        LayerState plain(recipe_of(std::nullopt, "f32.sequential"), right);
        const net::Tensor b = attention.right_tensor();
        const net::Tensor y = attention.run(layer, b);
        const net::Tensor wanted =
            attention.run(plain, attention.dequantized(RoleQuantizer(policy), b));
        const bool after = (granularity == Granularity::channel) == (right == Role::value);
        // Scales of the depth are applied before the product: the same bits. Others after it: one
        // rounding of the sum by the scale instead of one of each number.
        const double tolerance = after ? 1e-6 : 0;
        for (std::int64_t i = 0; i < y.size(); ++i)
          CHECK(y.data[i] == Approx(wanted.data[i]).epsilon(tolerance).margin(tolerance));
        CHECK(layer.count(net::GemmKind::fprop, Role::activation).get().elements == b.size());
      }
    }
  }
}

TEST_CASE("queries have a scale per token and head", "[fast]") {
  // Powers of two from head to head: codes are the same, so are the scores of a head alone.
  LayerRecipe recipe = recipe_of(std::nullopt, "f32.sequential");
  recipe[RolePart::activation] = element_policy("int8", Granularity::row);
  LayerState layer(recipe, Role::key);
  FrozenLayer numerics(layer);
  net::Tensor a = noise({kBatch, 4, kHeads * kDepth}, 1);
  const net::Tensor b = noise({kBatch, kTokens, kHeads * kDepth}, 2);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data[i] = a.data[i / (kHeads * kDepth) * kHeads * kDepth + i % kDepth] *
                (i / kDepth % kHeads == 1 ? 1024.0f : 1.0f);
  const auto scores = [&](const net::Tensor& queries, std::int64_t heads, const net::Tensor& keys) {
    const net::MatMul op({.heads = heads, .transpose_b = true});
    const std::vector<const net::Tensor*> inputs = {&queries, &keys};
    const std::vector<net::Shape> shapes = {queries.shape, keys.shape};
    net::Tensor y(op.output_shape(shapes));
    op.forward({.layer = "scores", .numerics = numerics}, inputs, y);
    return y;
  };
  const auto head = [](const net::Tensor& x, std::int64_t h) {
    net::Tensor one({x.dim(0), x.dim(1), kDepth});
    for (std::int64_t i = 0; i < one.size(); ++i)
      one.data[i] = x.data[(i / kDepth * kHeads + h) * kDepth + i % kDepth];
    return one;
  };
  const net::Tensor y = scores(a, kHeads, b);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const net::Tensor alone = scores(head(a, h), 1, head(b, h));
    const std::int64_t each = 4 * kTokens;
    for (std::int64_t i = 0; i < alone.size(); ++i)
      CHECK(y.data[(i / each * kHeads + h) * each + i % each] == alone.data[i]);
  }
}

TEST_CASE("integers go to the unit where the scales can wait for the results", "[fast]") {
  const char* unit = "nvidia.a100.mma.s8.s32";
  LayerRecipe recipe = recipe_of(element_policy("int8", Granularity::channel), unit);
  recipe[RolePart::activation] = element_policy("int8");
  const Attention values{Role::value, Granularity::channel, false, unit};
  LayerState layer(recipe, Role::value);
  const net::Tensor y = values.run(layer, values.right_tensor());
  LayerState exact(
      [&] {
        LayerRecipe r = recipe;
        r.fprop = unit_named("exact");
        return r;
      }(),
      Role::value);
  CHECK(y.data == values.run(exact, values.right_tensor()).data);
  const Attention keys{Role::key, Granularity::channel, false, unit};
  LayerState refused(recipe, Role::key);
  CHECK_THROWS_WITH(keys.run(refused, keys.right_tensor()),
                    Catch::Contains("layer attention, fprop: roles.key.granularity 'channel'") &&
                        Catch::Contains("expected a unit that takes float32") &&
                        Catch::Contains("nvidia.a100.mma.s8.s32"));
}

TEST_CASE("the groups of a layer are those of its product", "[fast]") {
  net::Node node{
      "scores",
      std::make_unique<net::MatMul>(net::MatMulOptions{.heads = kHeads, .transpose_b = true}),
      {}};
  const net::GemmLayer layer{.name = "scores", .node = &node, .right = Role::key};
  const net::Shape shape = {kBatch, kTokens, kHeads * kDepth};
  const RolePolicy row = element_policy("int8", Granularity::row),
                   channel = element_policy("int8", Granularity::channel);
  CHECK(scale_groups(row, layer, Role::key, shape, 1).count == kBatch * kTokens * kHeads);
  CHECK_FALSE(scale_groups(row, layer, Role::key, shape, 1).columns);
  CHECK(scale_groups(channel, layer, Role::key, shape, 1).count == kBatch * kHeads * kDepth);
  CHECK(scale_groups(channel, layer, Role::key, shape, 1).columns);
  CHECK(scale_groups(row, layer, Role::activation, shape, 1).count == kBatch * kTokens * kHeads);
  CHECK(scale_groups(element_policy("int8"), layer, Role::key, shape, 2).count == 2);
}

}  // namespace scale_groups_test
