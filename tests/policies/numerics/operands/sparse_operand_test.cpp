// Products on sparse units against operands compressed and multiplied by hand.
#include "policies/numerics/operands/sparse_operand.hpp"

#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/unit/sparse/compress.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace sparse_operand_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;
using net::Role;
using net::Side;

namespace {

constexpr const char* kUnit = "nvidia.h100.wgmma.e4m3.f32.sp24";

/// Every product of an operator, and matrix by matrix from codes found apart.
class Checker {
 public:
  template <class Op>
  Checker(Op op, const net::Shape& shape)
      : layer_(recipe(), std::make_unique<Op>(std::move(op)), {shape.begin() + 1, shape.end()}) {
    layer_.hear([this](const net::Product& p) { check(p); });
    run_op(layer_.op(), shape, layer_.in_training(0));
  }

  int products = 0;

 private:
  static std::string recipe() {
    const std::string fp8 = R"j({"format": "float8_e4m3fn", "scale": "none", "mask": )j";
    const std::string unit = R"j({"unit": ")j" + std::string(kUnit) + "\"}";
    return R"j("roles": {"weight": )j" + fp8 + R"j("transposable(2:4)"}, "activation": )j" + fp8 +
           R"j(null}, "gradient": {"dgrad": )j" + fp8 + R"j(null}, "wgrad": )j" + fp8 +
           R"j("mvue(2:4)"}}}, "gemms": {"fprop": )j" + unit + R"j(, "dgrad": )j" + unit +
           R"j(, "wgrad": )j" + unit + "}";
  }

  void check(const net::Product& p) {
    const Side side = p.kind == GemmKind::wgrad ? Side::a : Side::b;
    std::vector<std::uint8_t> a = codes(*p.a.source), b = codes(*p.b.source);
    const auto rows = [&](const net::ProductSide& s, std::vector<std::uint8_t>& c, std::int64_t i,
                          std::int64_t count) {
      return gathered(s, i, count, p.k, std::uint8_t{0}, [&](std::int64_t e) { return c[e]; });
    };
    for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
      const bool left = side == Side::a;
      const auto sparse = left ? rows(p.a, a, i, p.m) : rows(p.b, b, i, p.n);
      const auto dense = left ? rows(p.b, b, i, p.n) : rows(p.a, a, i, p.m);
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

  static std::vector<std::uint8_t> codes(const net::Tensor& x) {
    const RolePolicy policy = element_policy("float8_e4m3fn");
    std::vector<std::uint8_t> c(x.data.size());
    quantize_codes_reference(conversion_of(policy), x.data.data(), x.size(), 1, c.data());
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

  OneLayer layer_;
};

}  // namespace

TEST_CASE("sparse operand: all three products of a layer run on the sparse unit", "[fast]") {
  int products = Checker(net::Linear(16, 8, false), {8, 16}).products;
  net::Conv2dOptions options{.in_channels = 8,
                             .out_channels = 12,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .pad = 1,
                             .bias = false};
  products += Checker(net::Conv2d(options), {2, 4, 4, 8}).products;
  options.groups = 2;
  options.out_channels = 8;
  products += Checker(net::Conv2d(options), {2, 4, 4, 8}).products;
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

}  // namespace sparse_operand_test
