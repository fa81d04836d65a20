// Products on sparse units against operands compressed and multiplied by hand.
#include "policies/recipe/sparse_operand.hpp"

#include "emu/net/ops/conv2d.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/unit/sparse/compress.hpp"
#include "formats/error.hpp"
#include "policies/recipe/masked_operands.hpp"
#include "tests/catch.hpp"
#include "tests/policies/recipe/by_hand.hpp"

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;
using net::Role;

namespace {

constexpr const char* kUnit = "nvidia.h100.wgmma.e4m3.f32.sp24";

/// Every product by run_product(), and matrix by matrix from codes found apart.
class Checker : public net::Numerics {
 public:
  Checker() : layer_(recipe()) {
    layer_.weight_mask = std::make_unique<WeightMask>(
        *layer_.recipe.weight_mask, weight_mask_random(7, "layer", *layer_.recipe.weight_mask));
  }

  void product(const net::Step&, const net::Product& p) override {
    run_product(layer_, p, run_);
    const MaskedOperands masked(layer_, p, run_);
    const net::Product& read = masked.product();
    const Side side = *sparse_side(layer_.recipe, p.kind);
    CHECK(side == (p.kind == GemmKind::wgrad ? Side::a : Side::b));
    std::vector<std::uint8_t> a = codes(*read.a.source), b = codes(*read.b.source);
    const auto rows = [&](const net::ProductSide& s, std::vector<std::uint8_t>& c, std::int64_t i,
                          std::int64_t count) {
      return gathered(s, i, count, p.k, std::uint8_t{0}, [&](std::int64_t e) { return c[e]; });
    };
    for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
      const bool left = side == Side::a;
      const auto sparse = left ? rows(read.a, a, i, p.m) : rows(read.b, b, i, p.n);
      const auto dense = left ? rows(read.b, b, i, p.n) : rows(read.a, a, i, p.m);
      const std::int64_t m = left ? p.m : p.n, n = left ? p.n : p.m;
      const std::vector<float> d = multiplied(sparse, dense, m, n, p.k);
      std::vector<float> expected;
      for (std::int64_t r = 0; r < p.m; ++r)
        for (std::int64_t c = 0; c < p.n; ++c)
          expected.push_back(left ? d[r * n + c] : d[c * n + r]);
      CHECK(differences(result_of(p, i), expected) == 0);
    }
    ++products;
  }

  int products = 0;

 private:
  static LayerRecipe recipe() {
    RolePolicy policy = element_policy("float8_e4m3fn");
    policy.scale = "none";
    LayerRecipe layer = layer_recipe(policy, kUnit);
    layer.weight_mask = parse_mask("transposable(2:4)");
    layer.gradient_wgrad_mask = parse_mask("mvue(2:4)");
    return layer;
  }

  static std::vector<std::uint8_t> codes(const net::Tensor& x) {
    const RoleQuantizer quantizer(*recipe().weight);
    std::vector<std::uint8_t> c(x.data.size());
    quantize_codes_reference(quantizer.conversion(), x.data.data(), x.size(), 1, c.data());
    return c;
  }

  static std::vector<float> multiplied(const std::vector<std::uint8_t>& sparse,
                                       const std::vector<std::uint8_t>& dense, std::int64_t m,
                                       std::int64_t n, std::int64_t k) {
    const Format& format = find_format("float8_e4m3fn");
    const unit::Pattern pattern = unit::parse_pattern("2:4");
    std::vector<std::uint8_t> kept(m * k / 2), index(m * k / 2);
    unit::compress<std::uint8_t>(pattern, {&format, sparse.data(), m, k, nullptr}, kept.data(),
                                 index.data());
    const unit::Gather a = unit::Gather::matrix(m, k / 2), b = unit::Gather::matrix(n, k);
    std::vector<float> d(m * n);
    unit::find_unit(kUnit).multiply_reference({.m = m,
                                               .n = n,
                                               .k = k,
                                               .a = {&format, kept.data(), &a},
                                               .b = {&format, dense.data(), &b},
                                               .d = d.data(),
                                               .kept = index.data()});
    return d;
  }

  RecipeLayer layer_;
  ProductRun run_{.seed = 7, .phase = net::Phase::training};
};

}  // namespace

TEST_CASE("sparse operand: all three products of a layer run on the sparse unit", "[fast]") {
  int products = 0;
  const auto check = [&](net::Op& op, const net::Shape& shape) {
    Checker checker;  // a layer of its own: a step's weight is masked once
    run_op(op, shape, checker);
    products += checker.products;
  };
  net::Linear linear(16, 8, false);
  check(linear, {8, 16});
  net::Conv2dOptions options{.in_channels = 8,
                             .out_channels = 12,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .pad = 1,
                             .bias = false};
  net::Conv2d conv(options);
  check(conv, {2, 4, 4, 8});
  options.groups = 2;
  options.out_channels = 8;
  net::Conv2d grouped(options);
  check(grouped, {2, 4, 4, 8});
  CHECK(products == 9);
}

TEST_CASE("sparse operand: what breaks the pattern is named", "[fast]") {
  const unit::Unit& unit = unit::find_unit(kUnit);
  const Format& format = find_format("float8_e4m3fn");
  net::Tensor x({2, 8}), w({4, 8}), d({2, 4});
  const unit::Gather a = unit::Gather::matrix(2, 8), b = unit::Gather::matrix(4, 8);
  const std::vector<std::uint8_t> ones(32, 0x38);
  net::Product p{"fc",
                 GemmKind::fprop,
                 2,
                 4,
                 8,
                 {&x, &a, Role::activation, {.width = 8}},
                 {&w, &b, Role::weight, {.width = 8}},
                 d.data.data(),
                 {.width = 4}};
  const auto multiply = [&] {
    multiply_sparse(unit, p, Side::b, {&format, ones.data()}, {&format, ones.data()}, {}, {});
  };
  CHECK_THROWS_WITH(multiply(),
                    Contains("layer fc, fprop: the weight on unit") && Contains("row 0, group 0"));
  p.k = 6;
  CHECK_THROWS_WITH(multiply(), Contains("layer fc") && Contains("K = 6"));
}
