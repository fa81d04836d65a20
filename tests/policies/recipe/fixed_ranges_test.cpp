// Ranges that a recipe fixes: read, written, and in the place of calibrated and computed scales.
#include "policies/recipe/fixed_ranges.hpp"

#include "emu/net/forward.hpp"
#include "formats/error.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace fixed_ranges_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

Recipe recipe_of(const std::string& roles, const std::string& rest = "") {
  return Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {)" + roles + "}" + rest + "}",
                            "recipe");
}

const std::string kIntegers = R"("weight": {"format": "int4", "granularity": "channel"},
                              "activation": {"format": "int8"})";

std::string message(const std::string& ranges) {
  return numemu::test::message_of([&] { recipe_of(kIntegers, R"(, "ranges": )" + ranges); });
}

}  // namespace

TEST_CASE("fixed scales take the place of a rule", "[fast]") {
  RolePolicy role;
  role.format = &find_format("int8");
  role.scale = "absmax";
  CHECK_FALSE(role.fixed_scale());
  role.fix({{0.3f, -7}});
  CHECK(role.fixed_scale() == TensorScale{0.3f, -7});
  CHECK(role.stores_scale());
  CHECK(role.describe() == "int8 rne saturate fixed/tensor");
  role.fix({{0.1f}, {1e-38f}});
  CHECK_FALSE(role.fixed_scale());
  const float x[] = {1, 2};
  CHECK(choose_scales(RoleQuantizer(role), x, 2, 2) == std::vector<float>{0.1f, 1e-38f});
}

TEST_CASE("ranges are read strictly and written back", "[fast]") {
  const Recipe recipe =
      recipe_of(kIntegers,
                R"(, "ranges": {"conv1": {"weight": [[-1, 1], [-2, 0.5]], "activation": [0, 6]}})");
  const FixedRanges ranges = ranges_of(recipe);
  REQUIRE(ranges.size() == 1);
  CHECK(ranges.at("conv1").weight[1] == ValueRange{-2, 0.5f});
  CHECK(with_ranges(recipe, ranges).json() == recipe.json());
  CHECK(with_ranges(recipe, {}).json().contains("ranges") == false);
  CHECK(digest_of(ranges).size() == 16);
  CHECK(message("[]").find("recipe: ranges: expected an object of layers") == 0);
  CHECK(message(R"({"conv1": {"wieght": [[0, 1]]}})").find("did you mean 'weight'") !=
        std::string::npos);
  CHECK(message(R"({"conv1": {"activation": [1, 0]}})").find("ranges.conv1.activation") !=
        std::string::npos);
  CHECK(message(R"({"conv1": {"weight": []}})").find("ranges.conv1.weight") != std::string::npos);
  CHECK(message(R"({"conv1": {"activation": [0, 1e999]}})") != "");
}

TEST_CASE("ranges take the place of the tensor's scale and of calibration", "[fast]") {
  Recipe recipe = recipe_of(kIntegers);
  FixedRanges ranges;
  for (int c = 0; c < 6; ++c) ranges["conv1"].weight.push_back({-0.7f * (c + 1), 0.1f});
  ranges["conv1"].activation = ValueRange{-127, 3};
  recipe = with_ranges(recipe, ranges);
  const net::Graph graph = policies::test::small_graph();
  RecipeNumerics numerics(recipe, graph);
  const net::Tensor x = policies::test::drawn({4, 5, 5, 4}, 9);
  numerics.freeze(graph, 4, [&](std::int64_t first, std::int64_t count) {
    return std::vector<net::Tensor>{samples_of(x, first, count)};
  });
  CHECK(numerics.roles().static_scales().at("conv1") == TensorScale{1, 0});
  CHECK(numerics.roles().static_scales().at("conv2").scale < 1);
  net::forward(graph, x, numerics);
  const PlainOperand* const weight = numerics.roles().frozen_weight("conv1");
  REQUIRE(weight != nullptr);
  REQUIRE(weight->codes.scales.size() == 6);
  for (int c = 0; c < 6; ++c) CHECK(weight->codes.scales[c] == Approx(0.1f * (c + 1)));
  const std::vector<std::string> notes = notes_on_ranges(numerics.bound());
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "the ranges are fixed of 2 tensors: weights of 1, activations of 1");
}

TEST_CASE("a range with a zero point gives scale and zero point", "[fast]") {
  const Recipe recipe =
      with_ranges(recipe_of(R"("weight": {"format": "int8"},
                   "activation": {"format": "uint8", "zero_point": "calibrated"})"),
                  {{"conv1", {.weight = {}, .activation = ValueRange{-51, 204}}}});
  CHECK(recipe.layer("conv1")[RolePart::activation]->fixed_scale() == TensorScale{1, 51});
  CHECK(range_of(*recipe_of(R"("activation": {"format": "uint8", "zero_point": "calibrated"})")
                      .layer("conv1")[RolePart::activation],
                 {1, 51}) == ValueRange{-51, 204});
}

TEST_CASE("the calibrated ranges of a recipe give its calibrated scales", "[fast]") {
  const Recipe recipe = recipe_of(kIntegers);
  const Tuning tuning = policies::test::small_tuning(recipe);
  const auto fixed = tuned_numerics(tuning);
  RecipeNumerics calibrated(recipe, tuning.graph);
  calibrated.freeze(tuning.graph, tuning.calibration.samples, tuning.calibration.batch);
  CHECK(fixed->roles().static_scales() == calibrated.roles().static_scales());
}

TEST_CASE("ranges of no use are named, those of no layer refused", "[fast]") {
  const FixedRanges ranges = {{"conv1", {.weight = {{-1, 1}}, .activation = ValueRange{-1, 1}}}};
  const Recipe blocks = with_ranges(
      recipe_of(R"("weight": {"format": "mxfp4"}, "activation": {"format": "mxfp4"})"), ranges);
  const net::Graph graph = policies::test::small_graph();
  const std::vector<std::string> notes = notes_on_ranges({blocks, graph});
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "the recipe has no use for the fixed ranges of 2 tensors (no static scale): weight of "
        "conv1, activation of conv1");
  CHECK(notes_on_ranges({with_ranges(Recipe(), ranges), graph}).empty());
  const Recipe stranger = with_ranges(recipe_of(kIntegers), {{"conv9", {{{-1, 1}}, std::nullopt}}});
  CHECK_THROWS_WITH(std::make_unique<RecipeNumerics>(stranger, graph),
                    Catch::Contains("recipe: ranges: unknown layer 'conv9'"));
  const Recipe three =
      with_ranges(recipe_of(kIntegers), {{"conv1", {{{-1, 1}, {-1, 1}, {-1, 1}}, std::nullopt}}});
  RecipeNumerics numerics(three, graph);
  CHECK_THROWS_WITH(
      net::forward(graph, policies::test::drawn({1, 5, 5, 4}, 1), numerics),
      Catch::Contains("ranges: expected one for the tensor or 6, one per channel, found 3"));
}

}  // namespace fixed_ranges_test
