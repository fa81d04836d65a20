// Scales by the role's rule, and random bits of pieces of an array.
#include "policies/recipe/role_quantizer.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace role_quantizer_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("a scale is that of the rule for the elements or their largest magnitude", "[fast]") {
  const net::Tensor x = noise({300000}, 1);
  for (const char* rule : {"absmax", "none", "mse"}) {
    RolePolicy policy = element_policy("float8_e4m3fn");
    policy.scale = rule;
    const RoleQuantizer quantizer(policy);
    const Conversion how = quantizer.conversion();
    CHECK(quantizer.scale(x.data.data(), x.size()) ==
          find_scale_rule(rule).scale({x.data.data(), x.size(), &how}));
  }
  const double largest = largest_magnitude(x.data.data(), x.size());
  CHECK(parallel_magnitude(x.data.data(), x.size()) == largest);
  const RoleQuantizer absmax(element_policy("int8"));
  CHECK(absmax.scale_of_magnitude(largest) == absmax.scale(x.data.data(), x.size()));
  CHECK(parallel_magnitude(x.data.data(), 0) == 0);
}

TEST_CASE("a piece of an array draws the bits of its place", "[fast]") {
  const net::Tensor x = noise({4, 64}, 1);
  const RoleQuantizer quantizer(block_policy("mxfp4", BlockAxis::channel, "sr(8)"));
  const BlockLayout all = block_layout(find_block_format("mxfp4"), {4, 64}, 1),
                    one = block_layout(find_block_format("mxfp4"), {1, 64}, 1);
  const RandomSource source{.seed = 9};
  std::vector<float> whole(256), piece(64), first(64);
  quantizer.quantize(all, x.data.data(), {source, 0}, {}, whole.data());
  quantizer.quantize(one, x.data.data() + 128, {source, 128}, {}, piece.data());
  quantizer.quantize(one, x.data.data() + 128, {source, 0}, {}, first.data());
  const std::vector<float> expected(whole.begin() + 128, whole.begin() + 192);
  CHECK(differences(piece, expected) == 0);
  CHECK(differences(first, expected) > 0);
}

}  // namespace role_quantizer_test
