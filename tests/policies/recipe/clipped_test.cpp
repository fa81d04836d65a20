// Elements that saturate have zero gradients.
#include "policies/recipe/clipped.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/recipe/by_hand.hpp"

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("elements beyond the format's ends saturate", "[fast]") {
  net::Tensor x({6});
  x.data = {14.1f, 14, -14, -14.1f, 0, -0.1f};
  const RoleQuantizer with_sign(element_policy("int4")), without(element_policy("uint4"));
  CHECK(saturated_elements(with_sign, x, {2.0f}) == Saturated{1, 0, 0, 1, 0, 0});
  CHECK(saturated_elements(without, x, {2.0f}) == Saturated{0, 0, 1, 1, 0, 1});
  CHECK(saturated_elements(with_sign, x, {2.0f, 1.0f}) == Saturated{1, 0, 0, 1, 0, 0});
  CHECK(saturated_elements(with_sign, x, {1.0f, 1.0f}) == Saturated{1, 1, 1, 1, 0, 0});
}

TEST_CASE("elements of blocks saturate under the floor rule", "[fast]") {
  // Floor of log2 7.9 is 2: with the largest element 6 = 1.5 * 2^2 the scale is 1.
  net::Tensor x({2, 2});
  x.data = {7.9f, -7, 6, 1};
  const RoleQuantizer quantizer(block_policy("mxfp4"));
  net::ProductSide side{&x, nullptr, net::Role::activation, {.width = 2}};
  CHECK(saturated_blocks(quantizer, side, {}) == Saturated{1, 1, 0, 0});
  side.along_rows = true;
  CHECK(saturated_blocks(quantizer, side, {}) == Saturated{1, 1, 0, 0});
}

TEST_CASE("backward meets the products of a step in the opposite order", "[fast]") {
  ClippedMasks masks;
  masks.push({1, 0}, {});
  masks.push({0, 1}, {});
  float d[2];
  net::Product p;
  p.m = 1;
  p.n = 2;
  p.d = d;
  const auto apply = [&](net::GemmKind kind) {
    p.kind = kind;
    d[0] = d[1] = 5;
    masks.apply(p);
    return std::vector<float>{d[0], d[1]};
  };
  CHECK(apply(net::GemmKind::wgrad) == std::vector<float>{5, 5});
  CHECK(apply(net::GemmKind::dgrad) == std::vector<float>{5, 0});
  CHECK(apply(net::GemmKind::dgrad) == std::vector<float>{0, 5});
  CHECK(apply(net::GemmKind::dgrad) == std::vector<float>{5, 5});
  masks.clear();
  masks.push({1}, {});
  CHECK_THROWS_AS(apply(net::GemmKind::dgrad), Error);
}
