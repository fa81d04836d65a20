// Gradients that are pruned after dgrad has computed them.
#include "emu/net/ops/linear.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace mask_of_result_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using net::GemmKind;
using net::Role;

TEST_CASE("mask of a result: dgrad gives a pruned gradient", "[fast]") {
  OneLayer layer(
      R"j("roles": {"gradient": {"dgrad": {"mask": "hard(0.7,at=input)"}, "wgrad": null}})j",
      std::make_unique<net::Linear>(4, 8), {4});
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
  layer.numerics().product({net::Phase::training}, product);
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

TEST_CASE("mask of a result: it prunes before clipped gradients become zeros", "[fast]") {
  const net::Tensor x = noise({16, 8}, 3), w = noise({4, 8}, 4), g = noise({16, 4}, 5);
  const std::string clipped =
      R"j("activation": {"format": "int4", "scale": "delayed(1)", "ste": "clipped"})j";
  const std::string pruned =
      R"j("gradient": {"dgrad": {"mask": "hard(0.7,at=input)"}, "wgrad": null})j";
  const auto dgrad = [&](const std::string& roles) {
    OneLayer layer("\"roles\": {" + roles + "}", std::make_unique<net::Linear>(8, 4), {8});
    net::Tensor y({16, 4}), d({16, 8}), large = x;
    for (float& e : large.data) e *= 5;  // delayed scales are 1 in the first step: some saturate
    const net::Step step{net::Phase::training};
    const unit::Gather a = unit::Gather::matrix(16, 8), b = unit::Gather::matrix(4, 8),
                       ga = unit::Gather::matrix(16, 4), gb = unit::Gather::matrix(8, 4, true);
    net::Product p{"layer", GemmKind::fprop, 16, 4, 8, {}, {}};
    p.a = {&large, &a, Role::activation, {.width = 8}};
    p.b = {&w, &b, Role::weight, {.width = 8}};
    p.d = y.data.data();
    p.d_stack = {.width = 4};
    layer.numerics().product(step, p);
    net::Product back{"layer", GemmKind::dgrad, 16, 8, 4, {}, {}};
    back.a = {&g, &ga, Role::gradient, {.width = 4}};
    back.b = {&w, &gb, Role::weight, {.width = 8}, true};
    back.d = d.data.data();
    back.d_stack = {.width = 8};
    layer.numerics().product(step, back);
    return d.data;
  };
  const std::vector<float> plain = dgrad(""), zeroed = dgrad(clipped),
                           both = dgrad(clipped + ", " + pruned);
  std::vector<float> expected = dgrad(pruned);
  std::int64_t saturated = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (zeroed[i] != 0 || plain[i] == 0) continue;
    expected[i] = 0;
    ++saturated;
  }
  CHECK(saturated > 10);
  CHECK(differences(both, expected) == 0);
}

}  // namespace mask_of_result_test
