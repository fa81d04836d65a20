// numemu units: the table, one unit with all it is, JSON and the table of the documentation.
#include <algorithm>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

namespace {

auto lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("units: the table, its JSON and its Markdown list the same units", "[fast]") {
  const Scratch s;
  const Result table = s.run("units"), markdown = s.run("units --markdown");
  const Json all = Json::parse(s.run("units --json").out);
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK(markdown.code == 0);
  CHECK(all.size() > 200);
  CHECK(lines(markdown.out) == static_cast<std::int64_t>(all.size()) + 2);
  for (const Json& one : all) {
    const std::string name = one["name"];
    INFO(name);
    CHECK(table.out.find(name + " ") != std::string::npos);
    CHECK(markdown.out.find("| `" + name + "`") != std::string::npos);
    CHECK((one.contains("parameters") || name == "host.eigen.f32"));
  }
  CHECK_THAT(table.out, Contains("neutral.mac.FORMAT[.ROUNDING]"));
}

TEST_CASE("units: one unit in words", "[fast]") {
  const Scratch s;
  const Result one = s.run("units h100.wgmma.e4m3.f32");
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("nvidia.h100.wgmma.e4m3.f32\n\n"));
  CHECK_THAT(one.out, Contains("evidence   hardware (H)") && Contains("operands   float8_e4m3fn") &&
                          Contains("result     float32") && Contains("modifier   .sp24") &&
                          Contains("cut 13 bits below the largest exponent") &&
                          Contains("toward zero (rtz)") && Contains("0x7fffffff") &&
                          Contains("multiple of 32"));
  CHECK_THAT(s.run("units exact").out,
             Contains("alias      exact") && Contains("any format of at most 16 bits"));
  CHECK_THAT(s.run("units neutral.mac.e5m10.sr8").out,
             Contains("neutral.mac.float16.sr8\n") && Contains("8 random bits"));
  CHECK_THAT(s.run("units host.eigen.f32").out, Contains("not reproducible"));
  CHECK_THAT(s.run("units intel.emr.tdpbf16ps.bf16.f32").out,
             Contains("judged after rounding") && Contains("2 chains") && Contains("0xffc00000") &&
                 Contains("a NaN in C comes first"));
}

TEST_CASE("units: the parameters of each unit are a unit file", "[fast]") {
  const Scratch s;
  for (const char* name :
       {"nvidia.ada.mma.e4m3xe5m2.f16", "nvidia.b200.tcgen05.e2m1.f32.nv16",
        "amd.mi300.mfma.e4m3fnuz.f32", "amd.mi200.mfma.f16.f32", "intel.emr.vpdpbusds.u8xs8.s32",
        "arm.neoverse.bfdot.bf16.f32.ebf1", "neutral.xnor", "neutral.chunk64.hfp16_e6m9.sr8",
        "neutral.mac.fixed24q12.saturate", "nvidia.a100.mma.s4.s32.sp24"}) {
    const Result one = s.run("units --json " + std::string(name));
    INFO(name);
    REQUIRE(one.code == 0);
    s.file("u.json", Json::parse(one.out)["parameters"].dump());
    // It is read, and what is missing are the operands.
    check_refused(s.run("gemm --unit u.json --a no.npy --b no.npy --out d.npy --format-a e4m3fn"),
                  Json::parse(one.out)["operand"] == "any" ? "no.npy" : "");
  }
}

TEST_CASE("units: unknown names and contradicting options", "[fast]") {
  const Scratch s;
  check_refused(s.run("units nvidia.h100.wgmma.e4m3.f23"), "did you mean");
  check_refused(s.run("units mma.s8.s32"), "short for several");
  check_refused(s.run("units exact --markdown"), "--markdown: expected no unit name");
  check_refused(s.run("units a b"), "unexpected argument 'b'");
}
