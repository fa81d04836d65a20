// Scales kept between products: those of the rule, whatever was asked before.
#include "policies/numerics/scale_memo.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "formats/random.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "tests/catch.hpp"

namespace scale_memo_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

RoleQuantizer quantizer(const char* format, const char* scale) {
  RolePolicy policy;
  policy.format = &find_format(format);
  policy.scale = scale;
  return RoleQuantizer(policy);
}

}  // namespace

TEST_CASE("a memo gives the scales that the rule gives", "[fast]") {
  const RandomSource random{.seed = 2};
  std::vector<float> x(600);
  for (std::uint64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.uniform(i) - 0.5);
  x[5] = NAN;
  const auto n = static_cast<std::int64_t>(x.size());
  const RoleQuantizer few = quantizer("int2", "mse(exact)"), more = quantizer("int4", "mse(exact)"),
                      other = quantizer("int2", "mse(17)"), largest = quantizer("int2", "absmax");
  ScaleMemo memo;
  const auto check = [&](const RoleQuantizer& q, std::int64_t size, std::int64_t groups) {
    const std::vector<float> want = choose_scales(q, x.data(), size, groups);
    CHECK(memo.scales(q, x.data(), size, groups) == want);
    CHECK(memo.scales(q, x.data(), size, groups) == want);
  };
  for (const RoleQuantizer* q : {&few, &more, &other, &largest, &few}) check(*q, n, 1);
  check(few, n, 3);
  check(few, n - 1, 1);
  check(few, n, 1);
  for (float& v : x) v *= 2;  // the same place in memory, other elements
  check(few, n, 1);
  x[0] = 40;
  check(few, n, 1);
  check(few, 4, 1);
}

TEST_CASE("a memo asks the rule once for the same elements", "[fast]") {
  std::vector<float> x(1000, 0.3f), again = x;
  x[7] = again[7] = NAN;
  const RoleQuantizer few = quantizer("int2", "mse(exact)");
  ScaleMemo memo;
  CHECK(memo.asked() == 0);
  memo.scales(few, x.data(), 1000, 1);
  memo.scales(few, again.data(), 1000, 1);  // another place, the same bits
  CHECK(memo.asked() == 1);
  again[999] = -0.3f;
  memo.scales(few, again.data(), 1000, 1);
  CHECK(memo.asked() == 2);
  memo.scales(quantizer("int2", "absmax"), again.data(), 1000, 1);  // cheaper than a comparison
  memo.scales(quantizer("int2", "absmax"), again.data(), 1000, 1);
  CHECK(memo.asked() == 4);
}

}  // namespace scale_memo_test
