// numemu formats shows block formats beside the scalar ones.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

using namespace numemu::test;
using Catch::Contains;
using Summary = nlohmann::ordered_json;

TEST_CASE("block formats are listed with their parameters", "[fast]") {
  const Scratch s;
  const Result table = s.run("formats");
  REQUIRE(table.code == 0);
  for (const char* name : {"mxfp8_e4m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4", "float8_e4m3fn"})
    CHECK_THAT(table.out, Contains(name));
  CHECK_THAT(table.out, Contains("group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min])"));
  const Summary list = Summary::parse(s.run("formats --json").out);
  int blocks = 0;
  for (const Summary& one : list) {
    CHECK(one.contains("name"));
    CHECK(one.contains("bits"));
    blocks += one["kind"] == "block";
  }
  CHECK(blocks == 7);
}

TEST_CASE("one block format, named or described", "[fast]") {
  const Scratch s;
  CHECK_THAT(s.run("formats mxfp4").out, Contains("float4_e2m1fn") && Contains("4.25") &&
                                             Contains("ceil even floor mse nearest"));
  const Summary json = Summary::parse(s.run("formats 'group(int4, 128, float16)' --json").out);
  CHECK(json["name"] == "group(int4,128,float16)");
  CHECK(json["element"] == "int4");
  CHECK(json["scale"] == "float16");
  CHECK(json["block"] == 128);
  CHECK(json["bits"] == 4.125);
  CHECK(json["scale_rule"] == "absmax");
  CHECK(Summary::parse(s.run("formats 'mx(e2m1,32)' --json").out)["name"] == "mxfp4");
  CHECK(Summary::parse(s.run("formats 'group(int8,row,float32)' --json").out)["block"].is_null());
  check_refused(s.run("formats mxfp5"), "did you mean 'mxfp4'");
  check_refused(s.run("formats 'bfp(9,32)'"), "width K = 9 is outside 2..8");
  check_refused(s.run("formats float8_e4m3fm"), "did you mean 'float8_e4m3fn'");
}
