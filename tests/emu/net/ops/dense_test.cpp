// The three products of a dense layer: identity, operands, and fused chains bit for bit.
#include "emu/net/ops/dense.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kRows = 5, kIn = 7, kOut = 3;

struct Recorder : Numerics {
  std::vector<GemmKind> kinds;
  std::vector<Role> roles;
  std::string layer;
  void product(const Step& step, const Product& p) override {
    kinds.push_back(p.kind);
    roles.push_back(p.a.role);
    roles.push_back(p.b.role);
    layer = p.layer;
    CHECK(p.a.along_rows == (p.kind == GemmKind::wgrad));
    CHECK(p.b.along_rows == (p.kind != GemmKind::fprop));
    Numerics::product(step, p);
  }
};

TEST_CASE("dense: three products are fused chains", "[fast]") {
  const Tensor x = test::random_tensor({kRows, kIn}, 1), w = test::random_tensor({kOut, kIn}, 2),
               g = test::random_tensor({kRows, kOut}, 3);
  Recorder numerics;
  Tensor y(g.shape), grad_x(x.shape), grad_w(w.shape);
  dense_forward({.layer = "fc", .numerics = numerics}, {"fc"}, x, w, y);
  dense_input_gradient({.layer = "fc", .numerics = numerics}, {"fc"}, g, w, grad_x);
  dense_weight_gradient({.layer = "fc", .numerics = numerics}, {"fc"}, g, x, grad_w);
  std::vector<float> fprop(y.data.size()), dgrad(x.data.size()), wgrad(w.data.size());
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t o = 0; o < kOut; ++o)
      for (std::int64_t i = 0; i < kIn; ++i) {
        const float xi = x.data[r * kIn + i], wi = w.data[o * kIn + i], gi = g.data[r * kOut + o];
        float &f = fprop[r * kOut + o], &d = dgrad[r * kIn + i], &v = wgrad[o * kIn + i];
        f = std::fma(xi, wi, f);
        d = std::fma(gi, wi, d);
        v = std::fma(gi, xi, v);
      }
  CHECK(fprop == y.data);
  CHECK(dgrad == grad_x.data);
  CHECK(wgrad == grad_w.data);
  CHECK(numerics.layer == "fc");
  CHECK(
      (numerics.kinds == std::vector<GemmKind>{GemmKind::fprop, GemmKind::dgrad, GemmKind::wgrad}));
  CHECK((numerics.roles == std::vector<Role>{Role::activation, Role::weight, Role::gradient,
                                             Role::weight, Role::gradient, Role::activation}));
}

}  // namespace
}  // namespace numemu::net
