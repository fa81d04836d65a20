// The first line of a file of vectors: printed, parsed, and what it refuses.
#include "emu/oracle/subject.hpp"

#include "emu/oracle/record.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::subject_test {
namespace {

std::string refusal(const std::string& line) {
  return numemu::test::message_of([&] { parse_header(line); });
}

std::vector<std::string> names(const Layout& layout) {
  std::vector<std::string> all;
  for (const Field& f : layout)
    all.push_back(f.name + ":" + std::to_string(f.count) + "x" + std::to_string(f.bits));
  return all;
}

TEST_CASE("first lines of vector files are read as they are written", "[fast]") {
  for (const std::string line :
       {"# numemu-vectors 1 op=convert from=float32 to=float8_e4m3fn rounding=sr(8,a) "
        "overflow=saturate seed=18446744073709551615 level=2 style=ties",
        "# numemu-vectors 1 op=fma from=float16 to=float16 rounding=rne overflow=ieee seed=0 "
        "level=1 style=mixed",
        "# numemu-vectors 1 op=dot from=float8_e5m2 to=float32 rounding=rtz overflow=ieee seed=3 "
        "level=1 k=32 style=cancel",
        "# numemu-vectors 1 unit=nvidia.h100.wgmma.e4m3.f32 from=float8_e4m3fn to=float32 "
        "rounding=rtz overflow=ieee seed=1 level=1 k=64 style=alignment",
        "# numemu-vectors 1 unit=nvidia.ada.mma.e4m3xe5m2.f16 from=float8_e4m3fn,float8_e5m2 "
        "to=float16 rounding=rne overflow=ieee seed=1 level=1 k=32 style=mixed"}) {
    INFO(line);
    REQUIRE(is_header(line));
    CHECK(header_line(parse_header(line)) == line);
  }
}

TEST_CASE("wrong first lines of vector files are refused by name", "[fast]") {
  const std::string op =
      "# numemu-vectors 1 op=mul from=float16 to=float16 rounding=rne overflow=ieee";
  CHECK(refusal("# numemu-vectors 2 op=mul") == "numemu-vectors: expected version 1, found '2'");
  CHECK(refusal(op + " sed=1") == "unknown key 'sed'; did you mean 'seed'?");
  CHECK(refusal(op + " seed=x") == "seed: expected a whole number, found 'x'");
  CHECK(refusal(op + " seed=1 seed=1") == "seed: expected once, found twice");
  CHECK(refusal(op + " k") == "expected key=value, found 'k'");
  CHECK(refusal(op + " unit=exact") == "expected unit= or op=, one of them");
  CHECK(refusal("# numemu-vectors 1 op=mul from=float16") == "expected rounding=, found none");
  CHECK(refusal("# numemu-vectors 1 op=mull from=float16") ==
        "unknown operation 'mull'; did you mean 'mul'?");
  CHECK(refusal("# numemu-vectors 1 op=unit from=float16 rounding=rne overflow=ieee") ==
        "unknown operation 'unit'; known: convert, mul, add, fma, dot, sub, div, sqrt, fmsub, "
        "fnmsub, fnmadd, minimum, maximum, minimum_number, maximum_number, min_num, max_num, eq, "
        "lt, le, eq_signaling, lt_quiet, le_quiet, to_integer");
  CHECK(refusal("# numemu-vectors 1 unit=exact k=4") ==
        "unit neutral.exact: expected a format: it takes any");
  CHECK(refusal("# numemu-vectors 1 unit=h100.wgmma.e4m3.f32 rounding=rne") ==
        "rounding: expected rtz, the rounding of unit nvidia.h100.wgmma.e4m3.f32, found rne");
  CHECK(refusal("# numemu-vectors 1 op=dot from=float16 rounding=rne overflow=ieee k=99999999") ==
        "dot: k: expected 1 to 65536, found 99999999");
  for (const char* k : {"0", "-1", "65537"})
    CHECK(refusal(std::string("# numemu-vectors 1 unit=h100.wgmma.e4m3.f32 k=") + k) ==
          std::string("unit nvidia.h100.wgmma.e4m3.f32: k: expected 1 to 65536, found ") + k);
  CHECK(refusal("# numemu-vectors 1 unit=host.eigen.f32") ==
        "unit host.eigen.f32: no vectors: its results are not reproducible");
}

TEST_CASE("layouts of records", "[fast]") {
  const auto layout = [](const std::string& text) {
    return names(layout_of(parse_header("# numemu-vectors 1 " + text)));
  };
  using Names = std::vector<std::string>;
  CHECK(layout("op=convert from=float32 to=e4m3fn rounding=rne overflow=ieee") ==
        Names{"in:1x32", "out:1x8", "flags:1x8"});
  CHECK(layout("op=convert from=float32 to=e4m3fn rounding=sr(7) overflow=ieee") ==
        Names{"in:1x32", "random:1x7", "out:1x8", "flags:1x8"});
  CHECK(layout("op=fma from=e4m3fn to=float16 rounding=rne overflow=ieee") ==
        Names{"a:1x8", "b:1x8", "c:1x16", "out:1x16", "flags:1x8"});
  CHECK(layout("unit=nvidia.b200.tcgen05.e2m1.f32.mx32") ==
        Names{"a:64x4", "b:64x4", "sa:2x8", "sb:2x8", "c:1x32", "d:1x32", "flags:1x8"});
  CHECK(layout("unit=nvidia.a100.mma.f16.f32.sp24 k=32") ==
        Names{"a:16x16", "b:32x16", "e:16x2", "c:1x32", "d:1x32", "flags:1x8"});
  CHECK(layout("unit=neutral.mac.e5m10.sr8 from=float16 k=4") ==
        Names{"a:4x16", "b:4x16", "c:1x16", "r:4x8", "d:1x16", "flags:1x8"});
  CHECK(layout("unit=intel.emr.vpdpbusds.u8xs8.s32") ==
        Names{"a:4x8", "b:4x8", "c:1x32", "d:1x32"});
}

}  // namespace
}  // namespace numemu::oracle::subject_test
