// Units of a search: bits of their adders, what they take, and sizes of what they read.
#include <algorithm>

#include "experiments/search/space.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace search_accumulators_test {

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("adders take the bits of registers, of both levels, or of aligned sums", "[fast]") {
  const auto bits = [](const char* unit) { return adder_bits(unit::find_unit(unit)); };
  CHECK(bits("f32.sequential") == 32);
  CHECK(bits("neutral.mac.e8m7") == 16);
  CHECK(bits("neutral.mac.fixed24q8") == 24);
  CHECK(bits("neutral.mac.int20") == 20);
  CHECK(bits("neutral.chunk64.e8m7") == 16 + 16.0 / 64);
  CHECK(bits("neutral.kahan.e8m7") == 4 * 16);
  // 32 products aligned to 13 bits, then one register of e8m13.
  CHECK(bits("nvidia.h100.wgmma.e4m3.f32") == 13 + 22.0 / 32);
  CHECK(bits("neutral.exact") == 64);
}

TEST_CASE("units know the options that they take, and whose numbers have a size", "[fast]") {
  const SpacePlan plan{.formats = {"int4", "float8_e4m3fn"},
                       .blocks = {16},
                       .scales = {"float16"},
                       .rules = {"absmax"}};
  const std::vector<SearchOption> weights = space_of(plan, "weight"),
                                  activations = space_of(plan, "activation");
  const std::vector<RankedUnit> units =
      ranked_units({"neutral.mac.e8m7", "intel.emr.tdpbssd", "neutral.mac.float16"}, weights,
                   activations, "units");
  REQUIRE(units.size() == 3);
  CHECK(std::ranges::count(units[0].weights, true) == std::ssize(weights));
  CHECK(units[0].any_size);
  CHECK_FALSE(units[1].any_size);
  CHECK_FALSE(units[2].any_size);
  const auto find = [](const std::vector<SearchOption>& options, const std::string& name) {
    return *std::ranges::find_if(options,
                                 [&](const SearchOption& o) { return o.name.starts_with(name); });
  };
  for (std::size_t i = 0; i < weights.size(); ++i)
    CHECK(units[1].weights[i] ==
          (weights[i].policy.format->name == "int4" && weights[i].policy.block == nullptr));
  const SearchOption coarse = find(weights, "int4, one float32"),
                     wide = find(activations, "float8_e4m3fn, one float32"),
                     blocks = find(activations, "int4, float16 per 16");
  CHECK(units[0].size_of(coarse, wide) == 0);
  CHECK(units[2].size_of(coarse, wide) == 2 + 8);  // 7 and 448
  CHECK(units[2].size_of(coarse, blocks) != units[2].size_of(coarse, wide));
  CHECK(least_cost(weights, activations, units) == multiply_add_cost(4, 4, 16));
  CHECK(ranked_units({}, weights, activations, "units").size() == 1);
  CHECK_THROWS_WITH(ranked_units({"neutral.xnor"}, weights, activations, "--units"),
                    Catch::StartsWith("--units: neutral.xnor takes none of the"));
}

}  // namespace search_accumulators_test
