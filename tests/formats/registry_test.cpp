// The table of formats: names, aliases, sources, special codes, unknown names.
#include <set>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::registry_test {
namespace {

using Catch::Matchers::Message;

TEST_CASE("registry: every name of the contract is a row", "[fast]") {
  for (const char* name : {"float8_e4m3fn",
                           "float8_e5m2",
                           "float8_e4m3fnuz",
                           "float8_e5m2fnuz",
                           "float8_e4m3b11fnuz",
                           "float8_e4m3",
                           "float8_e3m4",
                           "float8_e8m0fnu",
                           "float6_e2m3fn",
                           "float6_e3m2fn",
                           "float4_e2m1fn",
                           "int2",
                           "int3",
                           "int4",
                           "int5",
                           "int6",
                           "int7",
                           "int8",
                           "uint2",
                           "uint3",
                           "uint4",
                           "uint5",
                           "uint6",
                           "uint7",
                           "uint8",
                           "sign1",
                           "float16",
                           "bfloat16",
                           "tfloat32",
                           "float32",
                           "float64",
                           "hfp8_e4m3",
                           "hfp8_e4m3_nosub",
                           "hfp8_e5m2",
                           "hfp8_e5m2_finite",
                           "hfp16_e6m9",
                           "dlfloat16"})
    CHECK(find_format(name).name == name);
  CHECK(find_format("e4m3fn").name == "float8_e4m3fn");
  CHECK(find_format("e2m1").name == "float4_e2m1fn");
  CHECK(find_format("hfp8_fwd").name == "hfp8_e4m3");
  CHECK(find_format("hfp8_bwd").name == "hfp8_e5m2");
  CHECK(find_format("fp16_169").name == "hfp16_e6m9");
}

TEST_CASE("registry: names of other kinds say what they are", "[fast]") {
  const auto message = [](const char* name) -> std::string {
    return numemu::test::message_of([&] { find_format(name); });
  };
  CHECK(message("mxfp4") == "'mxfp4' is a block format: quantize --block mxfp4");
  CHECK(message("NVFP4") == "'NVFP4' is a block format: quantize --block nvfp4");
  CHECK(message("group(int4,32,float16)") ==
        "'group(int4,32,float16)' is a block format: quantize --block group(int4,32,float16)");
  CHECK(message("int17") ==
        "unknown format 'int17': expected int2 to int16, or another format of `numemu formats`");
  CHECK(message("int0") ==
        "unknown format 'int0': expected int2 to int16, or another format of `numemu formats`");
  CHECK(message("uint17") ==
        "unknown format 'uint17': expected uint1 to uint16, or another format of `numemu formats`");
  for (const char* name : {"binary8p3", "binary8p3xe", "binary8"})
    CHECK_THAT(message(name), Catch::Contains("expected binary{K}p{P}{s|u}{e|f}"));
  CHECK(message("E4M3FN") == "unknown format 'E4M3FN'; did you mean 'e4m3fn'?");
  CHECK_THAT(message("mxfp5"), Catch::StartsWith("unknown format"));
  CHECK_THAT(message("integer"), Catch::StartsWith("unknown format"));
}

TEST_CASE("registry: no name or alias twice, every row explained", "[fast]") {
  std::set<std::string> names;
  for (const Format* f : named_formats()) {
    INFO(f->name);
    CHECK(names.insert(f->name).second);
    for (const std::string& alias : aliases_of(*f)) {
      CHECK(names.insert(alias).second);
      CHECK(&find_format(alias) == f);
    }
    CHECK_FALSE(f->source.empty());
    CHECK_FALSE(f->doc.empty());
    CHECK((f->bits >= 1 && f->bits <= 64));
  }
}

TEST_CASE("registry: an unknown name offers the nearest", "[fast]") {
  CHECK_THROWS_MATCHES(find_format("float8_e4m3f"), Error,
                       Message("unknown format 'float8_e4m3f'; did you mean 'float8_e4m3'?"));
  CHECK_THROWS_MATCHES(find_format("innt8"), Error,
                       Message("unknown format 'innt8'; did you mean 'int8'?"));
  CHECK_THROWS_AS(find_format(""), Error);
}

TEST_CASE("registry: special codes are the canonical ones", "[fast]") {
  CHECK(find_format("float8_e4m3fn").nan_code() == 0x7f);
  CHECK_FALSE(find_format("float8_e4m3fn").has_infinity());
  CHECK(find_format("float8_e5m2").nan_code() == 0x7e);
  CHECK(find_format("float8_e5m2").infinity_code(true) == 0xfc);
  CHECK(find_format("float8_e5m2fnuz").nan_code(true) == 0x80);
  CHECK(find_format("binary8p3ue").nan_code() == 0xff);
  CHECK_FALSE(find_format("float4_e2m1fn").has_nan());
  CHECK_FALSE(find_format("e5m0").has_nan());
  CHECK(find_format("int8").largest_code(true) == 0x80);
  CHECK(finite_values(find_format("float4_e2m1fn")) ==
        std::vector<double>{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6});
  CHECK_THROWS_AS(finite_values(find_format("float32")), Error);
}

TEST_CASE("registry: one bit is 0 or 1", "[fast]") {
  const Format& bit = find_format("uint1");
  CHECK((bit.bits == 1 && !bit.is_signed && bit.kind == Kind::integer));
  CHECK_THROWS_WITH(find_format("int1"), Catch::Contains("expected int2 to int16"));
  const auto code = [&](double x) {
    return encode(bit, value_of(x), {RoundingMode::rne}, Overflow::saturate).code;
  };
  for (const auto& [x, expected] : {std::pair(0.0, 0u), std::pair(0.5, 0u), std::pair(0.75, 1u),
                                    std::pair(1.0, 1u), std::pair(1.5, 1u), std::pair(9.0, 1u)})
    CHECK(code(x) == expected);
  CHECK(to_double(decode(bit, 1)) == 1);
}

}  // namespace
}  // namespace numemu::registry_test
