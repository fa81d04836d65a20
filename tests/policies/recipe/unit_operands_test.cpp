// Operands that a unit supports: element formats, blocks on scaled units and on float32 ones,
// sides.
#include "policies/recipe/unit_operands.hpp"

#include <memory>
#include <string>
#include <vector>

#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"

namespace unit_operands_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;
using net::Side;

namespace {

constexpr const char* kMx = "nvidia.b200.tcgen05.e4m3.f32.mx32";
constexpr const char* kNv = "nvidia.b200.tcgen05.e2m1.f32.nv16";
constexpr const char* kFp8 = "nvidia.h100.wgmma.e4m3.f32";

std::optional<RolePolicy> element(const char* format) {
  RolePolicy policy;
  policy.format = &find_format(format);
  policy.scale = "absmax";
  return policy;
}
std::optional<RolePolicy> block(const char* format) {
  RolePolicy policy;
  policy.block = &find_block_format(format);
  policy.format = policy.block->element;
  policy.granularity = Granularity::block;
  return policy;
}
void require(const char* unit, const std::optional<RolePolicy>& policy, Side side = Side::a) {
  require_operand(unit::find_unit(unit), policy, side);
}

}  // namespace

TEST_CASE("unit operands: the format that is handed over", "[fast]") {
  const unit::Unit &exact = unit::find_unit("exact"), &mx = unit::find_unit(kMx);
  CHECK(operand_format(exact, std::nullopt).name == "float32");
  CHECK(operand_format(exact, element("int8")).name == "int8");
  CHECK(operand_format(exact, block("mxfp4")).name == "float32");
  CHECK(operand_format(mx, block("mxfp8_e4m3")).name == "float8_e4m3fn");
  CHECK(block_scaled(mx));
  CHECK_FALSE(block_scaled(exact));
}

TEST_CASE("unit operands: elements by the unit's rule", "[fast]") {
  CHECK_NOTHROW(require(kFp8, element("float8_e4m3fn")));
  CHECK_THROWS_WITH(require(kFp8, element("float8_e5m2")),
                    Contains(kFp8) && Contains("float8_e5m2") && Contains("float8_e4m3fn"));
  CHECK_THROWS_WITH(require(kFp8, std::nullopt), Contains("operands of format float32"));
  CHECK_NOTHROW(require("nvidia.h100.mma.e4m3xe5m2.f16", element("float8_e5m2"), Side::b));
  CHECK_THROWS(require("nvidia.h100.mma.e4m3xe5m2.f16", element("float8_e5m2"), Side::a));
}

TEST_CASE("unit operands: codes whose values the unit's format has are re-encoded", "[fast]") {
  const auto wider = [](const char* unit, const std::optional<RolePolicy>& policy,
                        Side side = Side::b) -> std::string {
    const Format* const wide = wider_operand(unit::find_unit(unit), policy, side);
    return wide == nullptr ? "" : wide->name;
  };
  constexpr const char* kInt8 = "nvidia.h100.mma.s8.s32";
  constexpr const char* kMixed = "intel.emr.tdpbusd.u8xs8.s32";
  for (const char* format : {"int2", "int4", "int7", "uint4", "uint7"}) {
    CHECK(wider(kInt8, element(format)) == "int8");
    CHECK_NOTHROW(require(kInt8, element(format), Side::b));
  }
  CHECK(wider(kInt8, element("int8")).empty());
  CHECK(wider(kMixed, element("uint4"), Side::a) == "uint8");
  CHECK(wider(kMixed, element("uint4"), Side::b) == "int8");
  CHECK(wider(kFp8, element("float4_e2m1fn")) == "float8_e4m3fn");
  // Negative, fractional, or larger numbers, -0, and what stays float32.
  CHECK_THROWS_WITH(require(kMixed, element("int4"), Side::a),
                    Contains("does not take operands of format int4"));
  for (const auto& policy : {element("uint8"), element("int16"), element("float4_e2m1fn"),
                             element("float8_e4m3fn"), block("mxfp4"), std::optional<RolePolicy>()})
    CHECK_THROWS(require(kInt8, policy, Side::b));
  CHECK(wider("exact", element("int4")).empty());
  CHECK(wider(kMx, element("float4_e2m1fn")).empty());
}

TEST_CASE("unit operands: blocks of a scaled unit are its own", "[fast]") {
  CHECK_NOTHROW(require(kMx, block("mxfp8_e4m3")));
  CHECK_NOTHROW(require(kMx, block("mx(float8_e4m3fn,32)")));
  CHECK_NOTHROW(require(kNv, block("nvfp4")));
  CHECK_THROWS_WITH(require(kMx, block("mx(float8_e4m3fn,16)")),
                    Contains("takes blocks of 32 elements with float8_e8m0fnu scales") &&
                        Contains("mx(float8_e4m3fn,16)"));
  CHECK_THROWS_WITH(require(kMx, block("mxfp4")), Contains("float4_e2m1fn"));
  CHECK_THROWS_WITH(require(kMx, block("mxint8")), Contains("mxint8"));
  CHECK_THROWS_WITH(require(kNv, block("mxfp4")), Contains("blocks of 16"));
  CHECK_THROWS_WITH(require(kMx, element("float8_e4m3fn")), Contains("one scale per tensor"));
  CHECK_THROWS_WITH(require(kMx, std::nullopt), Contains("not float32"));
}

TEST_CASE("unit operands: other units take blocks as float32 or not at all", "[fast]") {
  for (const char* unit : {"exact", "f32.sequential", "neutral.mac.hfp16_e6m9.rne"})
    for (const char* format : {"mxfp4", "nvfp4", "group(int4,128,float16)"})
      CHECK_NOTHROW(require(unit, block(format)));
  CHECK_THROWS_WITH(
      require(kFp8, block("mxfp8_e4m3")),
      Contains("blocks of mxfp8_e4m3") && Contains("expected a unit with block scales"));
}

TEST_CASE("unit operands: a sparse unit compresses the operand that a mask makes N:M", "[fast]") {
  using net::GemmKind;
  LayerRecipe layer;
  const auto unit_of = [](const char* name) {
    return std::shared_ptr<const unit::Unit>(std::shared_ptr<void>(), &unit::find_unit(name));
  };
  layer.fprop = layer.dgrad = layer.wgrad = unit_of("nvidia.h100.wgmma.e4m3.f32.sp24");
  CHECK_THROWS_WITH(
      sparse_side(layer, GemmKind::fprop),
      Contains("at most 2 of 4 along the depth of fprop") && Contains("activation or weight"));
  const auto side = [&](const char* weight, const char* activation, const char* dgrad,
                        const char* wgrad, GemmKind kind) {
    const auto mask = [](const char* text) -> std::optional<MaskPolicy> {
      if (*text == 0) return std::nullopt;
      return parse_mask(text);
    };
    layer.masks[RolePart::weight] = mask(weight);
    layer.masks[RolePart::activation] = mask(activation);
    layer.masks[RolePart::gradient_dgrad] = mask(dgrad);
    layer.masks[RolePart::gradient_wgrad] = mask(wgrad);
    return sparse_side(layer, kind);
  };
  CHECK(side("greedy(2:4)", "", "", "", GemmKind::fprop) == Side::b);
  CHECK(side("greedy(2:4)", "greedy(2:4)", "", "", GemmKind::fprop) == Side::a);
  CHECK(side("greedy(1:2)", "", "", "", GemmKind::fprop) == Side::b);  // twice 1:2 is a 2:4
  CHECK(side("transposable(2:4)", "", "", "", GemmKind::dgrad) == Side::b);
  CHECK(side("", "", "greedy(2:4)", "", GemmKind::dgrad) == Side::a);
  CHECK(side("", "", "", "mvue(2:4)", GemmKind::wgrad) == Side::a);
  for (const auto& [weight, kind] :
       {std::pair("greedy(4:8)", GemmKind::fprop), std::pair("greedy(3:4)", GemmKind::fprop),
        std::pair("greedy(2:4)", GemmKind::dgrad),
        std::pair("transposable(2:4,layout=channel)", GemmKind::dgrad),
        std::pair("greedy(2:4,remainder=pad)", GemmKind::fprop),
        std::pair("greedy(2:4,remainder=dense)", GemmKind::fprop),
        std::pair("unstructured(0.5)", GemmKind::fprop)}) {
    INFO(weight);
    CHECK_THROWS_WITH(side(weight, "", "", "", kind), Contains("expected a mask"));
  }
  CHECK_THROWS_WITH(side("", "", "greedy(2:4,axis=batch)", "", GemmKind::dgrad),
                    Contains("expected a mask"));
  layer.fprop = unit_of(kFp8);
  CHECK(side("", "", "", "", GemmKind::fprop) == std::nullopt);
  layer.fprop = unit_of("host.eigen.f32");
  CHECK(side("greedy(2:4)", "", "", "", GemmKind::fprop) == std::nullopt);
}

TEST_CASE("unit operands: a product's sides", "[fast]") {
  LayerRecipe layer;
  const auto catalogue = [](const char* name) {
    return std::shared_ptr<const unit::Unit>(std::shared_ptr<void>(), &unit::find_unit(name));
  };
  layer.fprop = layer.dgrad = layer.wgrad = catalogue("nvidia.h100.mma.e4m3xe5m2.f16");
  layer[RolePart::activation] = element("float8_e4m3fn");
  layer[RolePart::weight] = element("float8_e5m2");
  CHECK_NOTHROW(require_operands(layer, net::GemmKind::fprop, true));
  CHECK_NOTHROW(require_operands(layer, net::GemmKind::dgrad, false));  // no gradient
  CHECK_THROWS_WITH(require_operands(layer, net::GemmKind::dgrad, true), Contains("float32"));
  layer[RolePart::gradient_dgrad] = element("float8_e4m3fn");
  CHECK_NOTHROW(require_operands(layer, net::GemmKind::dgrad, true));
  // wgrad reads activations as B.
  CHECK_THROWS_WITH(require_operands(layer, net::GemmKind::wgrad, false),
                    Contains("float8_e4m3fn"));
}

TEST_CASE("product: int4 weights on a unit of int8 give the sums of the exact unit", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {37}}};
  graph.add("fc", std::make_unique<net::Linear>(37, 11));
  net::initialize(graph, 3);
  net::Tensor x({9, 37});
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>(static_cast<int>(i * 97 % 101) - 40) / 64;
  const auto results = [&](const std::string& unit, const std::string& weight,
                           const char* activation = R"({"format": "int8"})") {
    RecipeNumerics numerics(
        Recipe::parse_text(R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": ")" + unit +
                               R"("}}, "roles": {"weight": )" + weight + R"(, "activation": )" +
                               activation + "}}",
                           "r.json"),
        graph);
    return net::forward(graph, x, numerics).data;
  };
  for (const char* weight :
       {R"({"format": "int4"})", R"({"format": "int4", "granularity": "channel"})",
        R"j({"format": "int3", "rounding": "sr(8)"})j"}) {
    INFO(weight);
    const std::vector<float> expected = results("exact", weight);
    CHECK(results("nvidia.h100.mma.s8.s32", weight) == expected);
    CHECK(results("intel.emr.tdpbssd.s8.s32", weight) == expected);
    // Zero points move codes, which are re-encoded too.
    const char* const shifted = R"({"format": "uint4", "zero_point": "calibrated"})";
    CHECK(results("nvidia.h100.mma.s8.s32", weight, shifted) == results("exact", weight, shifted));
  }
}

}  // namespace unit_operands_test
