// numemu formats shows block formats beside the scalar ones.

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace formats_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

TEST_CASE("block formats are listed with their parameters", "[fast]") {
  const Scratch s;
  const Result table = s.call("formats");
  REQUIRE(table.code == 0);
  for (const char* name : {"mxfp8_e4m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4", "float8_e4m3fn"})
    CHECK_THAT(table.out, Contains(name));
  CHECK_THAT(table.out, Contains("group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min][,tensor-scale])"));
  const Json list = Json::parse(s.call("formats --json").out);
  int blocks = 0;
  for (const Json& one : list) {
    CHECK(one.contains("name"));
    CHECK(one.contains("bits"));
    blocks += one["kind"] == "block";
  }
  CHECK(blocks == 7);
}

TEST_CASE("one block format, named or described", "[fast]") {
  const Scratch s;
  CHECK_THAT(s.call("formats mxfp4").out,
             Contains("float4_e2m1fn") && Contains("4.25") &&
                 Contains("ceil even floor mse(exact) mse(17) nearest"));
  const Json json = Json::parse(s.call("formats 'group(int4, 128, float16)' --json").out);
  CHECK(json["name"] == "group(int4,128,float16)");
  CHECK(json["element"] == "int4");
  CHECK(json["scale"] == "float16");
  CHECK(json["block"] == 128);
  CHECK(json["bits"] == 4.125);
  CHECK(json["scale_rule"] == "absmax");
  CHECK(Json::parse(s.call("formats 'mx(e2m1,32)' --json").out)["name"] == "mxfp4");
  CHECK(Json::parse(s.call("formats 'group(int8,row,float32)' --json").out)["block"].is_null());
  check_refusals(s, {{"formats mxfp5", "did you mean 'mxfp4'"},
                     {"formats 'bfp(9,32)'", "width K = 9 is outside 2..8"},
                     {"formats float8_e4m3fm", "did you mean 'float8_e4m3fn'"}});
}

TEST_CASE("integers have a lowest value and no smallest normal one", "[fast]") {
  const Scratch s;
  const Result text = s.call("formats int4");
  CHECK_THAT(text.out, Contains("lowest            -8.0\n") && Contains("smallest_normal   -\n") &&
                           Contains("smallest          1.0\n"));
  CHECK_THAT(s.call("formats uint4").out, Contains("lowest            0.0\n"));
  CHECK(Json::parse(s.call("formats int4 --json").out)["smallest_normal"].is_null());
  CHECK(Json::parse(s.call("formats e4m3fn --json").out)["smallest_normal"] == 0.015625);
  CHECK_FALSE(Json::parse(s.call("formats e4m3fn --json").out).contains("lowest"));
}

TEST_CASE("names that are no format say what was meant", "[fast]") {
  const Scratch s;
  check_refused(
      s.call("formats int17"),
      "unknown format 'int17': expected int2 to int16, or another format of `numemu formats`");
  check_refusals(s, {{"formats binary8p3", "expected binary{K}p{P}{s|u}{e|f}"},
                     {"formats E4M3FN", "did you mean 'e4m3fn'?"},
                     {"encode --format mxfp4 --in x.npy --out y.npy",
                      "'mxfp4' is a block format: quantize --block mxfp4"}});
}

}  // namespace formats_test
