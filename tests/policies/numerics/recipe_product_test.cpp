// Products under a recipe against operands quantized, gathered and multiplied by hand.
#include "policies/numerics/recipe_product.hpp"

#include <omp.h>

#include "emu/net/forward.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"
#include "policies/numerics/random_identity.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace recipe_product_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using net::GemmKind;

namespace {

/// What the elements of a side stand for before their scale, and that scale where it is the
/// tensor's.
struct ByHand {
  std::vector<float> values;
  float scale = 1;
};

ByHand elements_by_hand(const RoleQuantizer& q, const net::Tensor& x, const RandomSource& random) {
  ByHand result;
  const Conversion c = q.conversion(random);
  result.scale = absmax_scale(largest_magnitude(x.data.data(), x.size()), c);
  std::vector<std::uint8_t> codes(x.data.size());
  quantize_codes_reference(c, x.data.data(), x.size(), result.scale, codes.data());
  for (const std::uint8_t code : codes)
    result.values.push_back(static_cast<float>(to_double(decode(*c.format, code))));
  return result;
}

BlockQuantization quantization(const RoleQuantizer& q) {
  BlockQuantization how;
  how.format = q.policy().block;
  how.rule = &find_scale_rule(q.policy().scale, *how.format);
  how.element = q.conversion();
  return how;
}

/// y of blocks along the axis of [outer, length, inner].
std::vector<float> blocks_by_hand(const RoleQuantizer& q, const std::vector<float>& x,
                                  const std::vector<std::int64_t>& shape, int axis) {
  std::vector<float> y(x.size());
  quantize_blocks_reference(quantization(q), block_layout(*q.policy().block, shape, axis), x.data(),
                            {}, y.data());
  return y;
}

std::vector<float> blocks_by_hand(const RoleQuantizer& q, const net::ProductSide& side) {
  const net::Stack& s = side.stack;
  const std::int64_t rows = s.rows(side.source->size());
  if (side.along_rows)
    return blocks_by_hand(q, side.source->data, {s.outer, rows, s.inner * s.width}, 1);
  // The inner matrices here are groups of channels, which share blocks.
  return blocks_by_hand(q, side.source->data, {s.outer * rows, s.inner * s.width}, 1);
}

/// Runs every product under a recipe and by hand.
class Checker : public net::Numerics {
 public:
  Checker(LayerRecipe recipe, bool reduction) : layer(std::move(recipe)), reduction_(reduction) {}

  void product(const net::Step&, const net::Product& p) override {
    run_product(layer, p, run);
    const RoleQuantizer &qa = *layer.quantizer(p, net::Side::a),
                        &qb = *layer.quantizer(p, net::Side::b);
    const unit::Unit& unit = layer.recipe.unit(p.kind);
    ByHand a, b;
    const bool blocks = qa.blocks();
    if (!blocks) {
      a = elements_by_hand(qa, *p.a.source, operand_random(run.seed, p.layer, p.a.role, 0, p.kind));
      b = elements_by_hand(qb, *p.b.source, operand_random(run.seed, p.layer, p.b.role, 0, p.kind));
    } else if (!reduction_) {
      a.values = blocks_by_hand(qa, p.a);
      b.values = blocks_by_hand(qb, p.b);
    }
    const float alpha = a.scale * b.scale;
    for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
      const auto matrix = [&](const RoleQuantizer& q, const net::ProductSide& side,
                              const ByHand& hand, std::int64_t rows) {
        const std::span<const float> source =
            reduction_ ? std::span<const float>(side.source->data) : hand.values;
        std::vector<float> m =
            gathered(side, i, rows, p.k, 0.0f, [&](std::int64_t e) { return source[e]; });
        return reduction_ ? blocks_by_hand(q, m, {rows, p.k}, 1) : m;
      };
      std::vector<float> d = product_of(unit, p, matrix(qa, p.a, a, p.m), matrix(qb, p.b, b, p.n));
      if (!blocks)
        for (float& x : d) x *= alpha;
      CHECK(differences(result_of(p, i), d) == 0);
    }
    kinds.push_back(p.kind);
  }

  LayerState layer;
  ProductRun run{.seed = 7, .phase = net::Phase::training};
  std::vector<GemmKind> kinds;

 private:
  bool reduction_;
};

void check_op(const RolePolicy& policy, const char* unit, std::int64_t channels) {
  Checker checker(layer_recipe(policy, unit), policy.axis == BlockAxis::reduction);
  net::Conv2dOptions options;
  options.in_channels = channels;
  options.out_channels = 5;
  options.kernel_height = options.kernel_width = 3;
  options.pad = 1;
  net::Conv2d conv(options);
  run_op(conv, {2, 4, 3, channels}, checker);
  options.out_channels = 6;
  options.groups = 2;
  net::Conv2d grouped(options);
  run_op(grouped, {2, 4, 3, channels}, checker);
  net::Linear linear(channels, 6, false);
  run_op(linear, {2, 3, channels}, checker);
  CHECK(checker.kinds.size() == 9);
}

}  // namespace

TEST_CASE("tensor scales are applied after the unit", "[fast]") {
  check_op(element_policy("float8_e4m3fn"), "f32.sequential", 6);
  check_op(element_policy("float8_e5m2", Granularity::tensor, "sr(8)"), "f32.sequential", 6);
  check_op(element_policy("int4"), "exact", 6);
}

TEST_CASE("blocks of axis channel enter as their float32 values", "[fast]") {
  check_op(block_policy("mxfp4"), "f32.sequential", 40);
  check_op(block_policy("mxfp8_e4m3"), "exact", 40);
  check_op(block_policy("nvfp4"), "f32.sequential", 20);
  check_op(block_policy("group(int4,8,float16,zp)"), "f32.sequential", 12);
}

TEST_CASE("blocks of axis reduction run along the gathered depth", "[fast]") {
  check_op(block_policy("mxfp4", BlockAxis::reduction), "f32.sequential", 6);
  check_op(block_policy("mxint8", BlockAxis::reduction), "exact", 6);
  check_op(block_policy("nvfp4", BlockAxis::reduction), "f32.sequential", 6);
}

TEST_CASE("an exact block-scaled unit gives what exact gives of the blocks' values", "[fast]") {
  // Sums without rounding do not see padding; what may differ is which code has which scale.
  class Compare : public net::Numerics {
   public:
    explicit Compare(BlockAxis axis)
        : values_(layer_recipe(block_policy("mxfp8_e4m3", axis), "exact")),
          codes_(layer_recipe(block_policy("mxfp8_e4m3", axis), "neutral.exact.mx32")),
          fallback_(layer_recipe(block_policy("mxfp8_e4m3", BlockAxis::reduction), "exact")) {}
    void product(const net::Step&, const net::Product& p) override {
      const std::int64_t size = p.d_stack.count() * p.m * p.n;
      const bool taps = p.kind == GemmKind::wgrad && !p.b.gather->padding.identity();
      run_product(taps ? fallback_ : values_, p, run_);
      const std::vector<float> expected(p.d, p.d + size);
      run_product(codes_, p, run_);
      INFO(net::to_string(p.kind) << " k " << p.k);
      CHECK(differences(std::vector<float>(p.d, p.d + size), expected) == 0);
      ++products;
    }
    int products = 0;

   private:
    LayerState values_, codes_, fallback_;
    ProductRun run_{.phase = net::Phase::training};
  };
  for (const BlockAxis axis : {BlockAxis::channel, BlockAxis::reduction}) {
    Compare compare(axis);
    net::Conv2dOptions options;
    options.in_channels = 40;
    options.kernel_height = options.kernel_width = 3;
    options.pad = 1;
    for (const std::int64_t groups : {1, 2, 40}) {  // of 40, 20 and 1 channels: cut inside blocks
      options.groups = groups;
      options.out_channels = groups == 1 ? 33 : 40;
      net::Conv2d conv(options);
      run_op(conv, {2, 3, 4, 40}, compare);
    }
    net::Linear linear(40, 6, false);
    run_op(linear, {9, 4, 40}, compare);
    CHECK(compare.products == 12);
  }
}

TEST_CASE("a tensor scale is applied after a block-scaled unit", "[fast]") {
  const net::Tensor x = noise({3, 20}, 1), w = noise({4, 20}, 2);
  PlainProduct product(x, w);
  net::Product& p = product.p;
  for (const BlockAxis axis : {BlockAxis::channel, BlockAxis::reduction}) {
    LayerState layer(layer_recipe(block_policy("nvfp4", axis), "neutral.exact.nv16"));
    run_product(layer, p, {});
    const auto by_hand = [&](const net::Tensor& t, float& tensor_scale) {
      const std::int64_t rows = t.dim(0);
      std::vector<std::uint8_t> codes(t.data.size()), scales(static_cast<std::size_t>(2 * rows));
      quantize_blocks_reference(
          quantization(*layer[RolePart::weight]),
          block_layout(find_block_format("nvfp4"), {rows, 20}, 1), t.data.data(),
          {.codes = codes.data(), .scales = scales.data(), .tensor_scale = &tensor_scale}, nullptr);
      std::vector<float> values;
      for (std::int64_t i = 0; i < t.size(); ++i) {
        values.push_back(
            decode_table(find_format("float4_e2m1fn"))[codes[i]] *
            decode_table(find_format("float8_e4m3fn"))[scales[i / 20 * 2 + i % 20 / 16]]);
      }
      return values;
    };
    float sa = 0, sb = 0;
    const std::vector<float> a = by_hand(x, sa), b = by_hand(w, sb);
    std::vector<float> d = product_of(unit::find_unit("exact"), p, a, b);
    for (float& v : d) v *= sa * sb;
    CHECK(differences(result_of(p, 0), d) == 0);
  }
}

TEST_CASE("a fused block-scaled unit reads a border as blocks of zeros", "[fast]") {
  const RolePolicy policy = block_policy("mxfp8_e4m3");
  LayerState layer(layer_recipe(policy, "nvidia.b200.tcgen05.e4m3.f32.mx32"));
  const RoleQuantizer& q = *layer[RolePart::weight];
  class Capture : public net::Numerics {
   public:
    Capture(LayerState& layer, const RoleQuantizer& q) : layer_(layer), q_(q) {}
    void product(const net::Step&, const net::Product& p) override {
      run_product(layer_, p, {});
      const auto encode = [&](const net::ProductSide& side, std::int64_t rows,
                              std::vector<std::uint8_t>& scales) {
        // 32 channels a tap: blocks of the gathered rows are the taps', those of the border zeros.
        const std::vector<float> x = gathered(side, 0, rows, p.k, 0.0f,
                                              [&](std::int64_t e) { return side.source->data[e]; });
        std::vector<std::uint8_t> codes(x.size());
        scales.resize(x.size() / 32);
        quantize_blocks_reference(quantization(q_),
                                  block_layout(*q_.policy().block, {rows, p.k}, 1), x.data(),
                                  {.codes = codes.data(), .scales = scales.data()}, nullptr);
        return codes;
      };
      std::vector<std::uint8_t> scale_a, scale_b;
      const std::vector<std::uint8_t> a = encode(p.a, p.m, scale_a), b = encode(p.b, p.n, scale_b);
      const unit::Gather ga = unit::Gather::matrix(p.m, p.k), gb = unit::Gather::matrix(p.n, p.k);
      std::vector<float> d(static_cast<std::size_t>(p.m * p.n));
      unit::Gemm gemm;
      gemm.m = p.m;
      gemm.n = p.n;
      gemm.k = p.k;
      gemm.a = {q_.policy().format, a.data(), &ga};
      gemm.b = {q_.policy().format, b.data(), &gb};
      gemm.d = d.data();
      gemm.scale_a = scale_a.data();
      gemm.scale_b = scale_b.data();
      layer_.recipe.fprop->multiply_reference(gemm);
      CHECK(differences(result_of(p, 0), d) == 0);
    }

   private:
    LayerState& layer_;
    const RoleQuantizer& q_;
  };
  Capture capture(layer, q);
  net::Conv2dOptions options;
  options.in_channels = 32;
  options.out_channels = 4;
  options.kernel_height = options.kernel_width = 3;
  options.pad = 1;
  net::Conv2d conv(options);
  conv.parameters()[0].value = noise(conv.parameters()[0].value.shape, 1);
  const net::Tensor x = noise({1, 4, 4, 32}, 2);
  const std::vector<const net::Tensor*> inputs = {&x};
  net::Tensor y({1, 4, 4, 4});
  conv.forward({"layer", capture}, inputs, y);
}

TEST_CASE("signs have zeros around the border, or no border", "[fast]") {
  const std::string signs = R"({"format": "sign1", "scale": "none"})";
  const auto run = [&](const std::string& unit, std::int64_t pad) {
    OneLayer layer(R"j("roles": {"weight": )j" + signs + R"j(, "activation": )j" + signs +
                       R"j(}, "gemms": {"fprop": {"unit": ")j" + unit + R"j("}})j",
                   std::make_unique<net::Conv2d>(net::Conv2dOptions{
                       .kernel_height = 3, .kernel_width = 3, .pad = pad, .bias = false}),
                   {3, 3, 1});
    for (float& w : layer.op().parameters()[0].value.data) w = 0.25f;
    net::Tensor x({1, 3, 3, 1}, 2.0f);
    x.data[4] = -0.5f;  // the middle
    return net::forward(layer.graph(), x, layer.numerics()).data;
  };
  CHECK(run("f32.sequential", 1) == std::vector<float>{2, 4, 2, 4, 7, 4, 2, 4, 2});
  CHECK(run("f32.sequential", 0) == std::vector<float>{7});
  CHECK(run("neutral.xnor", 0) == std::vector<float>{7});
  CHECK_THROWS_WITH(run("neutral.xnor", 1),
                    Catch::Contains("neutral.xnor") && Catch::Contains("float32"));
}

TEST_CASE("heads of a stack have scales per row on both sides", "[fast]") {
  // Two samples of three heads: scores of 4 queries and 5 keys of width 8.
  const net::Tensor queries = noise({2, 4, 24}, 1), keys = noise({2, 5, 24}, 2);
  const unit::Gather ga = unit::Gather::matrix(4, 8), gb = unit::Gather::matrix(5, 8);
  net::Tensor scores({2, 4, 15});
  const net::Stack stack{.outer = 2, .inner = 3, .width = 8};
  net::Product p;
  p.layer = "qk";
  p.m = 4;
  p.n = 5;
  p.k = 8;
  p.a = {&queries, &ga, net::Role::activation, stack};
  p.b = {&keys, &gb, net::Role::activation, stack};
  p.d = scores.data.data();
  p.d_stack = {.outer = 2, .inner = 3, .width = 5};
  LayerState layer(layer_recipe(element_policy("int8", Granularity::row), "f32.sequential"));
  run_product(layer, p, {});
  const RoleQuantizer& q = *layer[RolePart::activation];
  for (std::int64_t b = 0; b < 6; ++b) {
    const auto rows = [&](const net::ProductSide& side, std::int64_t count,
                          std::vector<float>& scales) {
      std::vector<float> x =
          gathered(side, b, count, 8, 0.0f, [&](std::int64_t e) { return side.source->data[e]; });
      for (std::int64_t r = 0; r < count; ++r) {
        net::Tensor row({8});
        std::copy_n(x.begin() + r * 8, 8, row.data.begin());
        const ByHand hand = elements_by_hand(q, row, {});
        scales.push_back(hand.scale);
        std::copy_n(hand.values.begin(), 8, x.begin() + r * 8);
      }
      return x;
    };
    std::vector<float> sa, sb;
    const std::vector<float> a = rows(p.a, 4, sa), c = rows(p.b, 5, sb);
    std::vector<float> d = product_of(*layer.recipe.fprop, p, a, c);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] *= sa[i / 5] * sb[i % 5];
    CHECK(differences(result_of(p, b), d) == 0);
  }
}

TEST_CASE("channel scales of weights belong to the columns of a forward product", "[fast]") {
  const net::Tensor x = noise({3, 10}, 1), w = noise({4, 10}, 2);
  PlainProduct product(x, w);
  net::Product& p = product.p;
  LayerRecipe recipe = layer_recipe(std::nullopt, "f32.sequential");
  recipe[RolePart::weight] = element_policy("int4", Granularity::channel);
  LayerState layer(recipe);
  run_product(layer, p, {});
  net::Tensor row({10});
  std::vector<float> values, scales;
  for (std::int64_t j = 0; j < 4; ++j) {
    std::copy_n(w.data.begin() + j * 10, 10, row.data.begin());
    const ByHand hand = elements_by_hand(*layer[RolePart::weight], row, {});
    scales.push_back(hand.scale);
    values.insert(values.end(), hand.values.begin(), hand.values.end());
  }
  std::vector<float> d = product_of(*recipe.fprop, p, x.data, values);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] *= scales[i % 4];
  CHECK(differences(result_of(p, 0), d) == 0);
  p.kind = GemmKind::dgrad;
  // A product of backward reduces along the channels: its unit reads dequantized numbers.
  run_product(layer, p, {});
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= scales[i / 10];
  CHECK(differences(result_of(p, 0), product_of(*recipe.dgrad, p, x.data, values)) == 0);
  recipe[RolePart::weight] = element_policy("int4");
  recipe[RolePart::activation] = element_policy("int4", Granularity::row);
  LayerState by_row(recipe);
  unit::Gather taps = product.a;
  std::swap(taps.depth[0], taps.depth[1]);
  p.kind = GemmKind::fprop;
  p.a.gather = &taps;
  // The unit reads dequantized numbers; each row has a scale of its own.
  run_product(by_row, p, {});
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < x.size() / 10; ++i) {
    std::copy_n(x.data.begin() + i * 10, 10, row.data.begin());
    const ByHand hand = elements_by_hand(*by_row[RolePart::activation], row, {});
    for (const float value : hand.values) numbers.push_back(value * hand.scale);
    std::swap(numbers[i * 10], numbers[i * 10 + 1]);
  }
  const ByHand weights = elements_by_hand(*by_row[RolePart::weight], w, {});
  d = product_of(*recipe.fprop, p, numbers, weights.values);
  for (float& value : d) value *= weights.scale;
  CHECK(differences(result_of(p, 0), d) == 0);
}

TEST_CASE("of a large weight that many rows read only codes are kept", "[fast]") {
  const net::Tensor w = noise({64, 512}, 2);
  const unit::Gather gb = unit::Gather::matrix(64, 512);
  for (const std::int64_t rows : {4, 256}) {
    const net::Tensor x = noise({rows, 512}, 1);
    const unit::Gather ga = unit::Gather::matrix(rows, 512);
    net::Tensor first({rows, 64}), second = first;
    net::Product p{"fc", GemmKind::fprop, rows, 64, 512, {}, {}, first.data.data(), {.width = 64}};
    p.a = {&x, &ga, net::Role::activation, {.width = 512}};
    p.b = {&w, &gb, net::Role::weight, {.width = 512}};
    LayerState layer(layer_recipe(element_policy("int8"), "f32.sequential"));
    run_product(layer, p, {.frozen = true});
    CHECK((layer.prepared_weight == nullptr) == (rows == 256));
    p.d = second.data.data();
    run_product(layer, p, {.frozen = true});
    CHECK(first.data == second.data);
  }
}

TEST_CASE("results that are no float32 are scaled with one rounding", "[fast]") {
  const net::Tensor x = noise({2, 600}, 1), w = noise({3, 600}, 2);
  PlainProduct product(x, w);
  net::Product& p = product.p;
  net::Tensor& y = product.y;
  LayerState integers(layer_recipe(element_policy("int8"), "nvidia.a100.mma.s8.s32"));
  run_product(integers, p, {});
  const ByHand a = elements_by_hand(*integers[RolePart::activation], x, {}),
               b = elements_by_hand(*integers[RolePart::weight], w, {});
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      long double sum = 0;  // 64 bits: the product with alpha is exact
      for (std::int64_t k = 0; k < 600; ++k)
        sum += static_cast<long double>(a.values[i * 600 + k]) * b.values[j * 600 + k];
      CHECK(y.data[i * 3 + j] == static_cast<float>(sum * (a.scale * b.scale)));
    }
  }
  LayerState halves(layer_recipe(element_policy("float8_e4m3fn"), "nvidia.h100.wgmma.e4m3.f16"));
  run_product(halves, p, {});
  const ByHand e = elements_by_hand(*halves[RolePart::activation], x, {}),
               f = elements_by_hand(*halves[RolePart::weight], w, {});
  const float alpha = e.scale * f.scale;
  for (const float d : y.data) {
    // Without alpha it is a float16.
    const auto code = encode(find_format("float16"), value_of(d / alpha), {}, Overflow::ieee);
    CHECK(static_cast<float>(to_double(decode(find_format("float16"), code.code))) * alpha == d);
  }
}

TEST_CASE("the same bits for one two and three threads", "[fast]") {
  const net::Tensor x = noise({300, 512}, 1), w = noise({16, 512}, 2);
  const unit::Gather ga = unit::Gather::matrix(300, 512), gb = unit::Gather::matrix(16, 512);
  const int before = omp_get_max_threads();
  const RolePolicy policies[] = {
      element_policy("float8_e5m2", Granularity::tensor, "sr(8)"),
      element_policy("float16", Granularity::row, "sr(12)"),
      block_policy("mxfp4", BlockAxis::channel, "sr(8)"),
      block_policy("mxfp4", BlockAxis::reduction, "sr(8)"),
  };
  for (const RolePolicy& policy : policies) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      PlainProduct product(x, w);
      LayerState layer(layer_recipe(policy, "f32.sequential"));
      run_product(layer, product.p, {.seed = 3});
      results.push_back(product.y.data);
    }
    CHECK(differences(results[0], results[1]) == 0);
    CHECK(differences(results[0], results[2]) == 0);
  }
  omp_set_num_threads(before);
}

TEST_CASE("operands that a block-scaled unit cannot take are refused by name", "[fast]") {
  const net::Tensor x({1, 32}), w({1, 32});
  const unit::Gather g = unit::Gather::matrix(1, 32);
  float y = 0;
  net::Product p;
  p.layer = "fc";
  p.m = p.n = 1;
  p.k = 32;
  p.a = {&x, &g, net::Role::activation, {.width = 32}};
  p.b = {&w, &g, net::Role::weight, {.width = 32}};
  p.d = &y;
  LayerState layer(layer_recipe(element_policy("float8_e4m3fn"), "neutral.exact.mx32"));
  CHECK_THROWS_WITH(run_product(layer, p, {}),
                    Catch::Contains("neutral.exact.mx32") && Catch::Contains("float8_e4m3fn"));
}

}  // namespace recipe_product_test
