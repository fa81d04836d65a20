// The mask of a weight over training: when it is made, what it does, how it survives.
#include "policies/mask/weight_mask.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace weight_mask_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

WeightMask made(const char* text) {
  return {parse_mask(text), weight_mask_random(1, "fc", parse_mask(text))};
}

std::vector<float> masked(const net::Tensor& w, const std::vector<std::uint8_t>& keep) {
  std::vector<float> y = w.data;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = keep[i] != 0 ? y[i] : 0;
  return y;
}

}  // namespace

TEST_CASE("weight mask: refreshed when due, applied in between", "[fast]") {
  net::Tensor w = policies::test::noise({8, 16}, 1), later = policies::test::noise({8, 16}, 2);
  WeightMask each = made("greedy(2:4)"), third = made("greedy(2:4,refresh=3)"),
             once = made("greedy(2:4,refresh=0)");
  const std::vector<std::uint8_t> first = each.mask_of(w, 1), second = each.mask_of(later, 1);
  REQUIRE(first != second);
  for (WeightMask* mask : {&each, &third, &once})
    CHECK(mask->in_step(w, 1, 0)->data == masked(w, first));
  // A product of the same step reads the same weight for any argument.
  CHECK(third.in_step(later, 1, 0)->data == masked(w, first));
  CHECK(each.in_step(later, 1, 1)->data == masked(later, second));
  CHECK(third.in_step(later, 1, 1)->data == masked(later, first));
  CHECK(third.passing(later, 1)->data == masked(later, first));
  CHECK(third.in_step(later, 1, 3)->data == masked(later, second));
  CHECK(once.in_step(later, 1, 300)->data == masked(later, first));
}

TEST_CASE("weight mask: one that is never refreshed leaves zeros in the weight", "[fast]") {
  net::Tensor w = policies::test::noise({4, 8}, 1), moved = policies::test::noise({4, 8}, 2);
  WeightMask once = made("greedy(2:4,refresh=0)"), each = made("greedy(2:4)");
  const std::vector<std::uint8_t> keep = once.mask_of(w, 1);
  once.in_step(w, 1, 0);
  net::Tensor settled = moved;
  once.settle(settled);
  CHECK(settled.data == masked(moved, keep));
  // A new mask of such weights prunes nothing that is not zero.
  CHECK(made("greedy(2:4)").fixed(settled, 1)->data == settled.data);
  each.in_step(w, 1, 0);
  net::Tensor free = moved;
  each.settle(free);
  CHECK(free.data == moved.data);
}

TEST_CASE("weight mask: fixed weights are made once, until they are forgotten", "[fast]") {
  const net::Tensor w = policies::test::noise({4, 8}, 1), other = policies::test::noise({4, 8}, 2);
  WeightMask mask = made("greedy(2:4)");
  const auto first = mask.fixed(w, 1);
  CHECK(mask.fixed(other, 1) == first);
  mask.forget();
  CHECK(mask.fixed(other, 1)->data == masked(other, mask.mask_of(other, 1)));
  mask.fix(w);
  CHECK(mask.fixed(other, 1)->data == w.data);
}

TEST_CASE("weight mask: a weight that is put back is masked again", "[fast]") {
  const net::Tensor first = policies::test::noise({4, 8}, 1),
                    last = policies::test::noise({4, 8}, 2);
  WeightMask mask = made("greedy(2:4)");
  CHECK(mask.passing(last, 1)->data == masked(last, mask.mask_of(last, 1)));
  CHECK(mask.passing(last, 1) == mask.passing(last, 1));
  CHECK(mask.passing(first, 1)->data == masked(first, mask.mask_of(first, 1)));
}

TEST_CASE("weight mask: groups of a convolution and taps are cut apart", "[fast]") {
  const MaskPolicy channel = parse_mask("greedy(2:4)"),
                   flat = parse_mask("greedy(2:4,axis=reduction)");
  const net::Shape shape{12, 3, 3, 8};
  const MaskLayout a = weight_layout(channel, shape, 1), b = weight_layout(channel, shape, 3),
                   c = weight_layout(flat, shape, 1);
  CHECK((a.outer == 1 && a.rows == 12 && a.inner == 9 && a.width == 8));
  CHECK((b.outer == 3 && b.rows == 4 && b.inner == 9 && b.width == 8));
  CHECK((c.outer == 1 && c.rows == 12 && c.inner == 1 && c.width == 72));
}

TEST_CASE("weight mask: the state round trips and damaged ones are refused", "[fast]") {
  const net::Tensor w = policies::test::noise({5, 28}, 1),
                    later = policies::test::noise({5, 28}, 2);
  WeightMask mask = made("greedy(2:4,refresh=5)"), resumed = made("greedy(2:4,refresh=5)");
  CHECK(mask.state().empty());
  mask.in_step(w, 1, 0);
  resumed.load("m", mask.state());
  CHECK(resumed.keep() == mask.keep());
  CHECK(resumed.in_step(later, 1, 3)->data == mask.in_step(later, 1, 3)->data);
  resumed.load("m", "");
  CHECK(resumed.keep().empty());
  const std::string state = mask.state();
  for (const std::string& bad :
       {state.substr(0, 3), state.substr(0, 8), state + std::string(8, '\0'),
        std::string(8, '\xff') + state.substr(8), std::string(16, '\0')}) {
    CHECK_THROWS_WITH(resumed.load("m", bad), Contains("state m"));
  }
  // A mask of another weight is found when it is used.
  resumed.load("m", state);
  CHECK_THROWS_WITH(resumed.in_step(policies::test::noise({4, 8}, 1), 1, 1),
                    Contains("state m: expected a mask of 32 elements") && Contains("found 140"));
}

}  // namespace weight_mask_test
