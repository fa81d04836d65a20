// Operands with zero points: every result against the sum of (q - z) products in integers.
#include "policies/numerics/zero_points.hpp"

#include "emu/net/ops/conv.hpp"
#include "formats/blocks/block_convert.hpp"
#include "policies/numerics/recipe_product.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace zero_points_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

RolePolicy shifted(const char* format) {
  RolePolicy policy = element_policy(format);
  policy.zero_point = true;
  return policy;
}

/// q - z of every element, by the reference of block formats.
std::vector<std::int64_t> shifted_codes(const RoleQuantizer& q, const TensorScale& scale,
                                        const net::Tensor& x) {
  const BlockFormat& format = shifted_format(*q.policy().format);
  StoredScale stored;
  stored.scale = encode(*format.scale, value_of(scale.scale), {}, Overflow::saturate).code;
  const int bits = format.element->bits;
  stored.shift = static_cast<std::uint32_t>(scale.zero_point) & ((1u << bits) - 1);
  Conversion conversion = q.conversion();
  conversion.format = format.element;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const Encoded code =
        encode_in_block(format, conversion, block_scale(format, stored, 1), x.data[i], i);
    out.push_back(static_cast<std::int64_t>(to_double(decode(*format.element, code.code))) -
                  scale.zero_point);
  }
  return out;
}

/// Checks every product of an operator against sums in integers; the border adds nothing.
class Checker : public net::Numerics {
 public:
  Checker(LayerRecipe recipe, TensorScale a) : layer(std::move(recipe)), scale_(a) {
    layer.activation_scale = a;
    layer.frozen = true;
  }
  void product(const net::Step&, const net::Product& p) override {
    run_product(layer, p, {.frozen = true});
    const std::vector<std::int64_t> a =
        shifted_codes(*layer[RolePart::activation], scale_, *p.a.source);
    QuantizedTensor w;
    const RoleQuantizer& weight = *layer[RolePart::weight];
    quantize_tensor(weight, p.b.source->data.data(), p.b.source->size(),
                    choose_scales(weight, p.b.source->data.data(), p.b.source->size(), 1), {}, w);
    const float alpha = scale_.scale * w.scales[0];
    for (std::int64_t m = 0; m < p.d_stack.count(); ++m) {
      const auto left = gathered<std::int64_t>(p.a, m, p.m, p.k, 0, [&](auto i) { return a[i]; });
      const auto right = gathered<std::int64_t>(p.b, m, p.n, p.k, 0, [&](std::int64_t i) {
        return static_cast<std::int64_t>(w.element(i));
      });
      std::vector<float> wanted;
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
          std::int64_t sum = 0;
          for (std::int64_t k = 0; k < p.k; ++k) sum += left[i * p.k + k] * right[j * p.k + k];
          wanted.push_back(static_cast<float>(static_cast<long double>(sum) * alpha));
        }
      }
      CHECK(differences(result_of(p, m), wanted) == 0);
      ++products;
    }
  }
  LayerState layer;
  int products = 0;

 private:
  TensorScale scale_;
};

}  // namespace

TEST_CASE("zero points: the scale and the zero point of a range", "[fast]") {
  const RoleQuantizer u8{shifted("uint8")}, s8{shifted("int8")};
  // (3 - -1) / 255 upward, z = RNE(0 + 1 / s) = RNE(63.75).
  const float scale = u8.scale_of_range(-1, 3).scale;
  CHECK(double{scale} * 255 >= 4);
  CHECK(double{std::nextafter(scale, 0.0f)} * 255 < 4);
  CHECK(u8.scale_of_range(-1, 3).zero_point == 64);
  CHECK(s8.scale_of_range(-1, 3).zero_point == 64 - 128);
  CHECK(u8.scale_of_range(1, 3).zero_point == 0);  // the range contains 0
  CHECK(s8.scale_of_range(1, 3).zero_point == -128);
  CHECK(u8.scale_of_range(-3, -1).zero_point == 255);
  CHECK(u8.scale_of_range(0, 0) == TensorScale{1, 0});
  const float x[] = {0.5f, -1, HUGE_VALF, 3};
  CHECK(u8.scale_of_elements(x, 4) == u8.scale_of_range(-1, 3));
}

TEST_CASE("zero points: codes are those of ONNX QuantizeLinear", "[fast]") {
  // The example of the operator's specification.
  const float x[] = {0, 2, 3, 1000, -254, -1000};
  QuantizedTensor q;
  quantize_affine(RoleQuantizer(shifted("uint8")), x, 6, {2, 128}, {}, q);
  CHECK(q.narrow == std::vector<std::uint8_t>{128, 129, 130, 255, 1, 0});
  CHECK(q.element(4) == -127);
  CHECK(q.flags.overflow == 2);
  CHECK(q.flags.elements == 6);
  quantize_affine(RoleQuantizer(shifted("int8")), x, 6, {2, -128}, {}, q);
  CHECK(q.narrow == std::vector<std::uint8_t>{0x80, 0x81, 0x82, 127, 0x80, 0x80});
}

TEST_CASE("zero points: products are exact sums of (q - z), the border is 0", "[fast]") {
  for (const char* unit : {"f32.sequential", "exact"}) {
    for (const char* format : {"uint8", "int8", "uint4"}) {
      for (const std::int64_t groups : {1, 2}) {
        LayerRecipe recipe = layer_recipe(element_policy("int8"), unit);
        recipe[RolePart::activation] = shifted(format);
        const RoleQuantizer quantizer(*recipe[RolePart::activation]);
        Checker checker(recipe, quantizer.scale_of_range(-1.5f, 2));  // some elements saturate
        net::Conv2dOptions options;
        options.in_channels = 4;
        options.out_channels = 6;
        options.kernel_height = options.kernel_width = 3;
        options.pad = 1;
        options.groups = groups;
        net::Conv2d conv(options);
        conv.parameters()[0].value = noise(conv.parameters()[0].value.shape, 1);
        const net::Tensor x = noise({2, 4, 3, 4}, 2);
        const std::vector<const net::Tensor*> inputs = {&x};
        const std::vector<net::Shape> shapes = {x.shape};
        net::Tensor y(conv.output_shape(shapes));
        conv.forward({.layer = "layer", .numerics = checker}, inputs, y);
        CHECK(checker.products == groups);
      }
    }
  }
}

TEST_CASE("zero points: both operands of attention, on a unit of integers that wraps", "[fast]") {
  // Sums beyond 2^31 that the terms of the zero points bring back.
  const std::int64_t k = 200000;
  net::Tensor x({1, 1, k}), y({1, 1, k}), d({1, 1, 1});
  for (std::int64_t i = 0; i < k; ++i) x.data[i] = i % 2 == 0 ? 4.0f : 3.0f;
  for (std::int64_t i = 0; i < k; ++i) y.data[i] = i % 3 == 0 ? 2.0f : 1.0f;
  const unit::Gather gather = unit::Gather::matrix(1, k);
  net::Product p;
  p.layer = "scores";
  p.m = p.n = 1;
  p.k = k;
  p.a = {&x, &gather, net::Role::activation, {.width = k}};
  p.b = {&y, &gather, net::Role::activation, {.width = k}};
  p.d = d.data.data();
  p.d_stack = {.width = 1};
  LayerRecipe recipe = layer_recipe(shifted("int8"), "nvidia.a100.mma.s8.s32");
  recipe[RolePart::key] = recipe[RolePart::activation];
  LayerState layer(recipe, net::Role::key);
  layer.frozen = true;
  layer.activation_scale = TensorScale{1, 123};
  layer.second_scale = TensorScale{1, 120};
  run_product(layer, p, {.frozen = true});
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += double{x.data[i]} * y.data[i];
  CHECK(d.data[0] == static_cast<float>(sum));
}

}  // namespace zero_points_test
