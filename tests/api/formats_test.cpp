// Numbers to codes, blocks and back in memory; the files of the commands have the same bits.
#include "api/formats.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace formats_test {

using namespace numemu;

TEST_CASE("api formats: encode and decode are exact both ways", "[fast]") {
  const Codes x = api::float32({4}, {1, -0.5f, 1000, 0.1f});
  const api::EncodedArray e = api::encode(x, "e4m3fn", {}, true);
  const auto* codes = e.codes.array.as<std::uint8_t>();
  CHECK(codes[0] == 0x38);
  CHECK(codes[1] == 0xb0);
  CHECK(codes[2] == 0x7e);  // saturated
  CHECK(e.counts.overflow == 1);
  CHECK(e.flags.as<std::uint8_t>()[3] == kInexact);
  const Array y = api::decode(e.codes);
  REQUIRE(y.type == ArrayType::float32);
  CHECK(y.as<float>()[1] == -0.5f);
  CHECK(y.as<float>()[2] == 448);
  CHECK(api::decode(e.codes, "float64").type == ArrayType::float64);
  const api::EncodedArray ieee = api::encode(x, "e4m3fn", {.overflow = "ieee"});
  CHECK(ieee.codes.array.as<std::uint8_t>()[2] == 0x7f);
  const Codes wide =
      api::codes_of("float64", api::array_of<double>(ArrayType::float64, {1}, {0.1}));
  CHECK(api::decode(wide).type == ArrayType::float64);
  CHECK_THROWS_AS(api::decode(wide, "float32"), Error);
  CHECK_THROWS_AS(api::encode(x, "e4m3fm"), Error);
  CHECK_THROWS_AS(api::codes_of("int4", api::array_of<std::uint8_t>(ArrayType::uint8, {1}, {0x10})),
                  Error);
}

TEST_CASE("api formats: an array has the elements of its shape", "[fast]") {
  CHECK_THROWS_AS(api::float32({2, 2}, {1, 2, 3}), Error);
  CHECK_THROWS_AS(api::array_of<float>(ArrayType::float64, {1}, {1}), Error);
  CHECK(api::float32({}, {5}).array.elements() == 1);
}

TEST_CASE("api formats: stochastic rounding draws by seed and element", "[fast]") {
  const Codes x = api::float32({256}, std::vector<float>(256, 1.03f));
  const auto text = [&](std::uint64_t seed) {
    const api::EncodedArray e = api::encode(x, "e4m3fn", {.rounding = "sr(8)", .seed = seed});
    const auto* codes = e.codes.array.as<std::uint8_t>();
    return std::vector<std::uint8_t>(codes, codes + 256);
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("api formats: quantized blocks decode to their values", "[fast]") {
  std::vector<float> numbers(2 * 70);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 7;
  const Array x = api::array_of(ArrayType::float32, {2, 70}, numbers);
  for (const char* block : {"mxfp4", "nvfp4", "mxint8", "group(uint4,32,float16,zp)",
                            "group(uint4,32,float16,min)", "group(int8,channel,float32)"}) {
    INFO(block);
    const api::QuantizedArray q = api::quantize(x, {.block = block});
    const Array y = api::dequantize(q);
    for (std::int64_t i = 0; i < y.elements(); ++i)
      CHECK(y.as<float>()[i] == q.values.as<float>()[i]);
    CHECK(api::sqnr_of(x, y).db > 15);
    CHECK(api::sqnr_of(y, y).kind == api::Sqnr::Kind::infinite);
  }
  CHECK_THROWS_AS(api::quantize(x, {.block = "mxfp4", .rule = "absmax"}), Error);
  CHECK_THROWS_AS(api::quantize(x, {.block = "mxfp4", .axis = 2}), Error);
}

TEST_CASE("api formats: facts of a format, and the nearest name of any kind", "[fast]") {
  const api::FormatFacts facts = api::facts_of(find_format("e4m3fn"));
  CHECK(facts.largest == 448.0);
  CHECK(facts.smallest == 0x1p-9);
  CHECK(facts.smallest_normal == 0x1p-6);
  CHECK_FALSE(facts.aliases.empty());
  CHECK(api::facts_of(find_format("int4")).lowest == -8.0);
  CHECK_FALSE(api::facts_of(find_format("e15m2")).largest.has_value());
  CHECK_THROWS_WITH(api::find_scalar_format("mxfp5"), Catch::Contains("mxfp4"));
  CHECK(api::is_block_name("mx(int8,16)"));
  CHECK_FALSE(api::is_block_name("e4m3fn"));
  const Json block = api::block_json(find_block_format("nvfp4"));
  CHECK(block["scale_rules"] == Json({"absmax", "four-over-six", "mse(exact)"}));
  CHECK(block["argument_rules"] == Json({"detuned(RULE,FACTOR)", "pow2(RULE,TO)"}));
}

}  // namespace formats_test
