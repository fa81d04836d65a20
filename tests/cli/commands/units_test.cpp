// numemu units: lists and patterns, one unit with all it is, JSON and the table of the
// documentation.
#include <algorithm>
#include <cstdint>
#include <sstream>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace units_test {

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;

namespace {

auto lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

std::size_t widest(const std::string& text) {
  std::istringstream in(text);
  std::size_t most = 0;
  for (std::string line; std::getline(in, line);) most = std::max(most, line.size());
  return most;
}

/// The text with each continued line joined to the one before.
std::string flowing(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n ", at)) != std::string::npos;)
    text.replace(at, text.find_first_not_of(' ', at + 1) - at, " ");
  return text;
}

}  // namespace

TEST_CASE("units: the lists, their JSON and the Markdown hold the same units", "[fast]") {
  const Scratch s;
  const Result list = s.call("units '*'"), markdown = s.call("units --markdown");
  const Json all = Json::parse(s.call("units --json").out);
  CHECK(list.code == 0);
  CHECK(list.err.empty());
  CHECK(markdown.code == 0);
  CHECK(all.size() > 200);
  CHECK(lines(markdown.out) == static_cast<std::int64_t>(all.size()) + 2);
  for (const Json& one : all) {
    const std::string name = one["name"];
    INFO(name);
    CHECK(list.out.find("\n" + name + " ") != std::string::npos);
    CHECK(markdown.out.find("| `" + name + "`") != std::string::npos);
    CHECK((one.contains("parameters") || name == "host.eigen.f32"));
    CHECK(one.contains("code") == one.contains("parameters"));
  }
}

TEST_CASE("units: chips and instructions on 80 columns, neutral ones first, counted", "[fast]") {
  const Scratch s;
  const std::string list = s.call("units").out, all = s.call("units '*'").out;
  for (const std::string& text : {list, all}) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
    }
  }
  const auto row = [&](const std::string& name) {
    const std::size_t at = list.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return list.substr(at + 1, list.find('\n', at + 1) - at - 1);
  };
  CHECK_THAT(row("neutral.exact"), Contains(" 1  D ") && Contains("K+C exact rne->f32"));
  CHECK_THAT(row("nvidia.h100.wgmma"), Contains(" 16  ") && Contains("16+C F25 rtz->f32, 5 more"));
  CHECK_THAT(row("intel.emr.vpdpbusds"), Contains("4+C int sat->s32"));
  CHECK(list.find("neutral.kahan.FORMAT") < list.find("host.eigen.f32"));
  CHECK(list.find("host.eigen.f32") < list.find("nvidia.v100.mma"));
  CHECK_THAT(list, Contains("\nev            D definition, S silicon") &&
                       Contains("25 bits kept below it"));
  // The counts add up to the units there are.
  std::int64_t sum = 0;
  std::istringstream stream(list);
  std::string line, name;
  for (std::getline(stream, line); std::getline(stream, line) && !line.empty();) {
    std::int64_t count = 0;
    if (std::istringstream(line) >> name >> count) sum += count;
  }
  CHECK(sum == static_cast<std::int64_t>(Json::parse(s.call("units --json").out).size()));
}

TEST_CASE("units: patterns", "[fast]") {
  const Scratch s;
  const Result wgmma = s.call("units h100.wgmma");
  CHECK(wgmma.code == 0);
  CHECK(lines(wgmma.out) == 1 + 16 + 2);
  CHECK_THAT(wgmma.out, Contains("\nnvidia.h100.wgmma.e4m3.f32       H   32+C F13 rtz->e8m13\n") &&
                            Contains("modifiers: .leeds .mmasim .sp24 .satfinite; see units NAME"));
  const Json mixed = Json::parse(s.call("units 'nvidia.h?00.wgmma.e4m3x*' --json").out);
  REQUIRE(mixed.size() == 4);
  CHECK(mixed.at(0)["name"] == "nvidia.h100.wgmma.e4m3xe5m2.f32");
  // A pattern that fits one unit describes it; a short form is one unit's where others only hold
  // it.
  CHECK(s.call("units '*.tdpbssd.*'").out.starts_with("intel.emr.tdpbssd.s8.s32\n\n"));
  CHECK(s.call("units h100.mma.f16.f32").out.starts_with("nvidia.h100.mma.f16.f32\n\n"));
  check_refused(s.call("units '*.e9m9.*'"), "no unit fits '*.e9m9.*'");
}

TEST_CASE("units: one unit in words", "[fast]") {
  const Scratch s;
  const Result one = s.call("units h100.wgmma.e4m3.f32");
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("nvidia.h100.wgmma.e4m3.f32\n\n"));
  CHECK(widest(one.out) <= 80);
  CHECK_THAT(flowing(one.out), Contains("evidence   hardware (H)") &&
                                   Contains("operands   float8_e4m3fn") &&
                                   Contains("result     float32") && Contains("modifier   .sp24") &&
                                   Contains("cut 13 bits below the largest exponent") &&
                                   Contains("toward zero (rtz)") && Contains("0x7fffffff") &&
                                   Contains("multiple of 32"));
  CHECK_THAT(flowing(s.call("units exact").out),
             Contains("alias      exact") && Contains("any format of at most 16 bits"));
  CHECK_THAT(flowing(s.call("units neutral.mac.e5m10.sr8").out),
             Contains("neutral.mac.float16.sr8\n") && Contains("8 random bits"));
  CHECK_THAT(s.call("units host.eigen.f32").out, Contains("not reproducible"));
  CHECK_THAT(flowing(s.call("units intel.emr.tdpbf16ps.bf16.f32").out),
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
    const Result one = s.call("units --json " + std::string(name));
    INFO(name);
    REQUIRE(one.code == 0);
    s.file("u.json", Json::parse(one.out)["parameters"].dump());
    // It is read, and what is missing are the operands.
    check_refused(s.call("gemm --unit u.json --a no.npy --b no.npy --out d.npy --format-a e4m3fn"),
                  Json::parse(one.out)["operand"] == "any" ? "no.npy" : "");
  }
}

TEST_CASE("units: a file in words, its canonical form and its fast path", "[fast]") {
  const Scratch s;
  s.file("u.json", R"({"numemu_unit": 1, "core": "fused", "name": "mine", "a": "e4m3fn",
      "b": "e4m3fn", "group": 0, "k": 32, "alignment": {"fraction_bits": 14, "rounding": "rodd"}, "products_overflow": true,
      "accumulator": {"format": "float32", "rounding": "rtz", "overflow_to_infinity": true}})");
  const Result words = s.call("units u.json");
  CHECK(words.code == 0);
  CHECK(words.out.starts_with("mine\n\n"));
  CHECK_THAT(words.out, Contains("\n  \"a\": \"float8_e4m3fn\",\n"));
  CHECK_THAT(flowing(words.out), Contains("evidence   described by you (Y)") &&
                                     Contains("code       32+C F14rodd rtz->f32\n") &&
                                     Contains("fast path  none: the reference") &&
                                     Contains("products_overflow false in place of true") &&
                                     Contains("cut 14 bits below the largest exponent"));
  const Json json = Json::parse(s.call("units u.json --json").out);
  CHECK(json["grade"] == "described by you");
  CHECK(json["fast_path"].is_null());
  CHECK(json["parameters"]["alignment"]["fraction_bits"] == 14);

  const Result wrong = s.call(
      "units " + s.file("v.json", R"({"numemu_unit": 1, "core": "tree", "leaf": 2, "k": -1})"));
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(lines(wrong.err) == 2);
  CHECK_THAT(wrong.err, Contains("did you mean 'tree.leaf'?") && Contains("unit: k: expected 0"));
}

TEST_CASE("units: templates and the schema", "[fast]") {
  const Scratch s;
  s.file("t.json", s.call("units --template chain").out);
  CHECK_THAT(s.call("units t.json").out,
             Contains("fma rne->f32") && Contains("fast path  float chain"));
  check_refused(s.call("units --template wave"), "--template");
  CHECK(Json::parse(s.call("units --schema").out)["properties"].contains("outer"));
}

TEST_CASE("units: unknown names and contradicting options", "[fast]") {
  const Scratch s;
  check_refusals(s,
                 {{"units nvidia.h100.wgmma.e4m3.f23", "did you mean"},
                  {"units fp32", "a format; did you mean 'f32.sequential' or 'exact'?"},
                  {"units fp16", "a format; did you mean 'neutral.mac.float16' or 'exact'?"},
                  {"gemm --unit mma.s8.s32 --a a.npy --b b.npy --out d.npy", "short for several"},
                  {"units exact --markdown", "--markdown: expected no unit name"},
                  {"units a b", "unexpected argument 'b'"}});
}

}  // namespace units_test
