// One role: element and block formats, granularities, scales with history, and every refusal.
#include "policies/recipe/role_json.hpp"

#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace role_json_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

RolePolicy role(const std::string& name, const std::string& text) {
  const Json json = parse_json(text, "r.json");
  return read_role(JsonReader(json, "r.json"), role_row(name));
}
Json canonical(const std::string& name, const std::string& text) {
  return role_json(role(name, text));
}

}  // namespace

TEST_CASE("role: a block format brings its block and its scale rule", "[fast]") {
  const RolePolicy policy = role("weight", R"({"format": "mxfp4"})");
  REQUIRE(policy.block != nullptr);
  CHECK(policy.block->name == "mxfp4");
  CHECK(policy.format->name == "float4_e2m1fn");
  CHECK(policy.granularity == Granularity::block);
  CHECK(policy.axis == BlockAxis::channel);
  CHECK(policy.scale == "floor");
  CHECK(policy.describe() == "mxfp4 rne saturate floor/block");
  CHECK(role("activation", R"({"format": "nvfp4"})").scale == "absmax");
  const RolePolicy along =
      role("gradient", R"j({"format": "bfp(6,16)", "axis": "reduction", "scale": "even"})j");
  CHECK(along.axis == BlockAxis::reduction);
  CHECK(along.scale == "even");
  CHECK(role("weight", R"j({"format": "group(int4,128,float16)"})j").block->size == 128);
}

TEST_CASE("role: an element format in blocks", "[fast]") {
  const RolePolicy policy =
      role("weight", R"({"format": "int8", "granularity": "block", "block": 64})");
  REQUIRE(policy.block != nullptr);
  CHECK(policy.block == &scaled_format(find_format("int8"), Span::block, 64));
  CHECK(policy.scale == "absmax");
  CHECK(role("weight", R"({"format": "int8", "granularity": "block"})").block->size == 32);
  const Json json = role_json(policy);
  CHECK(json["format"] == "int8");
  CHECK(json["block"] == 64);
  // One spelling for one thing.
  CHECK(canonical("weight", R"j({"format": "group(int8,64,float32)"})j") == json);
}

TEST_CASE("role: the canonical form gives the same policy back", "[fast]") {
  const std::pair<const char*, const char*> cases[] = {
      {"weight", R"({"format": "e4m3fn"})"},
      {"weight", R"({"format": "int8", "granularity": "channel", "scale": "mse"})"},
      {"weight",
       R"j({"format": "mx(float8_e4m3fn,16)", "axis": "reduction", "rounding": "sr(8,a)"})j"},
      {"weight", R"j({"format": "group(uint4,32,float16,zp)"})j"},
      {"weight", R"j({"format": "group(int4,channel,float16)"})j"},
      {"activation", R"({"format": "int8", "granularity": "row", "ste": "clipped"})"},
      {"gradient", R"j({"format": "float8_e5m2", "scale": "delayed(16)"})j"},
      {"gradient", R"j({"format": "float8_e5m2", "scale": "delayed(4, mse)"})j"},
      {"saved", R"({"format": "int2", "granularity": "row"})"},
      {"state", R"({"format": "mxfp8_e4m3"})"},
      {"exchange", R"({"format": "int2", "granularity": "channel"})"},
      {"vector", R"({"format": "bfloat16"})"}};
  for (const auto& [name, text] : cases) {
    INFO(text);
    const Json json = canonical(name, text);
    CHECK(canonical(name, json.dump()) == json);
    CHECK(json.contains("ste") == (std::string(text).find("clipped") != std::string::npos));
  }
  CHECK(canonical("gradient", R"j({"format": "int8", "scale": "delayed(4,absmax)"})j")["scale"] ==
        "delayed(4)");
}

TEST_CASE("role: mse is written mse(exact), so that old results are not taken for new ones",
          "[fast]") {
  CHECK(canonical("weight", R"({"format": "int8", "scale": "mse"})")["scale"] == "mse(exact)");
  CHECK(canonical("weight", R"j({"format": "mxfp4", "scale": "mse(17)"})j")["scale"] == "mse(17)");
  CHECK(canonical("gradient", R"j({"format": "int8", "scale": "delayed(4,mse)"})j")["scale"] ==
        "delayed(4,mse(exact))");
  CHECK(with_canonical_names(parse_json(R"({"format": "int8", "scale": "mse"})", "p"))["scale"] ==
        "mse(exact)");
}

TEST_CASE("role: delayed scales keep a history", "[fast]") {
  const RolePolicy policy =
      role("weight", R"j({"format": "float8_e4m3fn", "scale": "delayed(16)"})j");
  CHECK(policy.history == 16);
  CHECK(policy.scale == "absmax");
  CHECK(policy.describe() == "float8_e4m3fn rne saturate delayed(16)/tensor");
  CHECK(role("weight", R"({"format": "int8"})").history == 0);
}

TEST_CASE("role: stored tensors are scaled only where the format needs it", "[fast]") {
  for (const char* format : {"float16", "bfloat16", "hfp16_e6m9", "dlfloat16"})
    CHECK(role("vector", Json{{"format", format}}.dump()).scale == "none");
  for (const char* format : {"float8_e4m3fn", "int8", "int4"})
    CHECK(role("vector", Json{{"format", format}}.dump()).scale == "absmax");
  CHECK(role("weight", R"({"format": "float16"})").scale == "absmax");
}

TEST_CASE("role: clipped straight-through", "[fast]") {
  CHECK(role("weight", R"({"format": "int4", "ste": "clipped"})").straight_through ==
        StraightThrough::clipped);
  CHECK(role("weight", R"({"format": "int4", "ste": "identity"})").straight_through ==
        StraightThrough::identity);
}

TEST_CASE("role: calibrated zero points", "[fast]") {
  const char* text = R"({"format": "uint8", "zero_point": "calibrated"})";
  CHECK(role("activation", text).zero_point);
  CHECK(role("key", text).zero_point);
  CHECK(canonical("activation", text)["zero_point"] == "calibrated");
  CHECK_FALSE(canonical("activation", R"({"format": "int8", "zero_point": "none"})")
                  .contains("zero_point"));
  const auto refused = [](const char* name, const std::string& rest, const std::string& why) {
    CHECK_THROWS_WITH(role(name, R"({"zero_point": "calibrated", )" + rest + "}"), Contains(why));
  };
  refused("weight", R"("format": "int8")", "r.json: zero_point: expected 'none': calibrated zero");
  refused("activation", R"("format": "float8_e4m3fn")",
          "r.json: zero_point: expected 'none' for float8_e4m3fn");
  refused("activation", R"("format": "int12")", "'none' for int12");
  refused("activation", R"("format": "int8", "granularity": "row")", "granularity 'tensor'");
  refused("activation", R"("format": "int8", "scale": "mse")", "r.json: scale");
  CHECK_THROWS_WITH(role("activation", R"({"format": "int8", "zero_point": "calibrate"})"),
                    Contains("r.json: zero_point: unknown zero point 'calibrate'") &&
                        Contains("did you mean 'calibrated'"));
}

TEST_CASE("role: tokens and channels of keys and values, rows of embeddings", "[fast]") {
  CHECK(role("key", R"({"format": "int4", "granularity": "channel"})").granularity ==
        Granularity::channel);
  CHECK(role("value", R"({"format": "int4", "granularity": "row"})").granularity ==
        Granularity::row);
  CHECK(role("key", R"({"format": "bfloat16"})").scale == "none");
  CHECK(role("embedding", R"({"format": "int8", "granularity": "channel"})").granularity ==
        Granularity::channel);
  CHECK_THROWS_WITH(role("embedding", R"({"format": "int8", "granularity": "row"})"),
                    Contains("granularity: expected 'tensor', 'channel' or 'block'"));
  CHECK_THROWS_WITH(role("value", R"j({"format": "int8", "scale": "delayed(4)"})j"),
                    Contains("a rule without history"));
}

TEST_CASE("role: float32 and null are not quantized, but their keys are read", "[fast]") {
  const auto stays = [](const std::string& text) {
    const Json json = parse_json(text, "r.json");
    return stays_float32(JsonReader(json, "r.json"));
  };
  for (const char* text : {"null", R"({"format": null})", R"({"format": "float32"})",
                           R"({"format": "float32", "scale": "absmax"})"})
    CHECK(stays(text));
  CHECK_FALSE(stays(R"({"format": "bfloat16"})"));
  CHECK_FALSE(stays("{}"));
  CHECK_THROWS_WITH(stays(R"({"format": "float32", "scal": "absmax"})"), Contains("'scale'"));
}

TEST_CASE("role: every wrong value is refused by name", "[fast]") {
  struct Case {
    const char *role, *text, *message;
  };
  const Case cases[] = {
      {"weight", R"({"format": "mxfp5"})", "format: unknown block format 'mxfp5'; did you mean"},
      {"weight", R"j({"format": "mx(int4,32)"})j", "r.json: format: "},
      {"weight", R"({"format": 8})", "format: expected a string"},
      {"weight", R"({"format": "mxfp4", "granularity": "tensor"})",
       "granularity: expected 'block', which mxfp4 implies"},
      {"weight", R"({"format": "mxfp4", "block": 32})",
       "block: expected no size: mxfp4 has its own"},
      {"weight", R"({"format": "int8", "block": 32})", "block: expected no size unless"},
      {"weight", R"({"format": "int8", "granularity": "block", "block": 0})",
       "block: expected an integer from 1 to"},
      {"weight", R"({"format": "sign1", "granularity": "block"})", "r.json: format: "},
      {"weight", R"({"format": "mxfp4", "scale": "absmax"})",
       "scale: scale rule 'absmax' has no scales for mxfp4, expected "},
      {"weight", R"({"format": "int8", "scale": "floor"})", "scale: scale rule 'floor'"},
      {"weight", R"({"format": "int8", "granularity": "rows"})",
       "granularity: unknown granularity 'rows'; did you mean 'row'"},
      {"weight", R"({"format": "int8", "granularity": "row"})", "granularity: expected 'tensor',"},
      {"activation", R"({"format": "int8", "granularity": "channel"})", "reduction axis"},
      {"gradient", R"({"format": "int8", "granularity": "channel"})", "reduction axis"},
      {"vector", R"({"format": "int8", "granularity": "channel"})",
       "channels are those of weights"},
      {"state", R"({"format": "int8", "granularity": "row"})", "rows are those of activations"},
      {"weight", R"({"format": "int8", "axis": "reduction"})", "axis: expected 'channel'"},
      {"saved", R"({"format": "mxint8", "axis": "reduction"})", "axis: expected 'channel'"},
      {"weight", R"({"format": "int8", "axis": "rows"})", "axis: unknown block axis 'rows'"},
      {"weight", R"j({"format": "int8", "scale": "delayed(0)"})j", "scale: expected delayed(N)"},
      {"weight", R"({"format": "int8", "scale": "delayed"})", "scale: expected delayed(N)"},
      {"weight", R"j({"format": "int8", "scale": "delayed(2,none)"})j",
       "scale: expected a rule with a scale, for delayed scaling, not none"},
      {"weight", R"j({"format": "int8", "scale": "delayed(2,absmx)"})j",
       "scale: unknown scale rule 'absmx'; did you mean 'absmax'"},
      {"weight", R"j({"format": "int8", "scale": "delayed(2)", "granularity": "channel"})j",
       "scale: expected a rule without history"},
      {"vector", R"j({"format": "int8", "scale": "delayed(2)"})j",
       "scale: expected a rule without history"},
      {"weight", R"j({"format": "mxfp4", "scale": "delayed(2)"})j",
       "scale: expected a rule without history"},
      {"gradient", R"({"format": "int8", "ste": "clipped"})", "ste: expected 'identity'"},
      {"weight", R"({"format": "int8", "ste": "cliped"})", "did you mean 'clipped'"},
      {"weight", R"({"format": "bfloat16"})", "scale: expected scale rule none for bfloat16"},
      {"weight", R"({"format": "float64"})", "a format of at most 16 bits"},
      {"weight", R"({"format": "e13m2"})", "at most 8 exponent bits"},
      {"weight", R"({"format": "float8_e8m0fnu"})", "a format with a zero"},
      {"exchange", R"({"format": "sign1"})", "a format with a zero"},
      {"gradient", R"({"format": "sign1"})", "a format with a zero"}};
  for (const Case& wrong : cases) {
    INFO(wrong.role << " " << wrong.text);
    CHECK_THROWS_WITH(role(wrong.role, wrong.text), Contains(wrong.message));
  }
  CHECK_THROWS_WITH(role_row("weigth"), Contains("did you mean 'weight'"));
}

TEST_CASE("role: weights and activations may be signs", "[fast]") {
  for (const char* name : {"weight", "activation"})
    CHECK(role(name, R"({"format": "sign1", "scale": "none"})").format->name == "sign1");
}

TEST_CASE("role: a patch changes keys, and the defaults with the kind of format", "[fast]") {
  const auto patched = [](const std::string& base, const std::string& patch) {
    Json json = canonical("weight", base);
    patch_role(json, parse_json(patch, "p.json"));
    return canonical("weight", json.dump());
  };
  const Json kept = patched(R"({"format": "int8", "rounding": "rtz", "granularity": "channel"})",
                            R"({"format": "int4"})");
  CHECK(kept["rounding"] == "rtz");
  CHECK(kept["granularity"] == "channel");
  const Json blocks =
      patched(R"({"format": "int8", "rounding": "rtz", "scale": "mse", "granularity": "channel"})",
              R"({"format": "mxfp4"})");
  CHECK(blocks["rounding"] == "rtz");
  CHECK(blocks["scale"] == "floor");
  CHECK(blocks["granularity"] == "block");
  const Json back = patched(R"({"format": "mxfp4", "axis": "reduction"})", R"({"format": "int8"})");
  CHECK(back["scale"] == "absmax");
  CHECK(back["granularity"] == "tensor");
  CHECK(back["axis"] == "channel");
  CHECK_FALSE(patched(R"({"format": "int8", "granularity": "block", "block": 16})",
                      R"({"granularity": "tensor"})")
                  .contains("block"));
}

TEST_CASE("role: names in a patch become canonical, other values stay", "[fast]") {
  const Json patch = with_canonical_names(parse_json(
      R"j({"format": "e4m3fn", "rounding": "sr(8,c)", "scale": "delayed( 4, absmax )", "block": 8})j",
      "p.json"));
  CHECK(
      patch ==
      parse_json(
          R"j({"format": "float8_e4m3fn", "rounding": "sr(8)", "scale": "delayed(4)", "block": 8})j",
          "p.json"));
  CHECK(with_canonical_names(Json{{"format", "mx( e4m3fn , 16 )"}})["format"] ==
        "mx(float8_e4m3fn,16)");
  CHECK(with_canonical_names(Json()).is_null());
}

}  // namespace role_json_test
