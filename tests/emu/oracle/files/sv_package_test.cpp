// The SystemVerilog package of a file of vectors: its sizes, classes in order, names it refuses.
#include "emu/oracle/files/sv_package.hpp"

#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::sv_package_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a package has the sizes of every port, and numbers classes as they come", "[fast]") {
  const Subject s = parse_header(
      "# numemu-vectors 1 unit=nvidia.b200.tcgen05.e2m1.f32.nv16 k=64 from="
      "float4_e2m1fn to=float32 rounding=rtz overflow=ieee seed=0 level=1");
  const Layout layout = layout_of(s);
  SvPackage package;
  std::string classes;
  for (const auto& names : {std::vector{"ties", "alignment_F+1"}, {"near_ties", "ties"}}) {
    Records records(layout, 2);
    for (std::int64_t i = 0; i < 2; ++i)
      records.class_of[static_cast<std::size_t>(i)] =
          records.class_number(names[static_cast<std::size_t>(i)]);
    package.append_classes(records, classes);
  }
  CHECK(classes == "00 // ties\n01 // alignment_F+1\n02 // near_ties\n00 // ties\n");
  const std::string text = package.text("tb", s, layout);
  for (const char* line :
       {"package tb_pkg;", "localparam int N = 4;", "localparam int K = 64;",
        "localparam int A_BITS = 4;", "localparam int A_COUNT = 64;",
        "typedef logic [A_COUNT-1:0][A_BITS-1:0] a_t;", "localparam int SA_BITS = 8;",
        "localparam int SA_COUNT = 4;", "typedef logic [D_BITS-1:0] d_t;",
        "localparam int CLASSES = 3;", "ClassTies = 8'd0,", "ClassAlignmentFPlus1 = 8'd1,",
        "ClassNearTies = 8'd2\n", "$readmemh({prefix, \".sb.hex\"}, sb_mem, 0, N - 1);",
        "$readmemh({prefix, \".class.hex\"}, class_mem, 0, N - 1);"})
    CHECK_THAT(text, Contains(line));
}

TEST_CASE("a package quotes the description of its unit", "[fast]") {
  const auto own = unit::make_unit(unit::parse_description(
      R"({"numemu_unit": 1, "name": "my.chain", "core": "chain", "a": "float16", "b": "float16",
          "accumulator": {"format": "float32"}})",
      "u.json"));
  const Subject s = unit_subject(*own, 4);
  CHECK_THAT(SvPackage().text("tb", s, layout_of(s)),
             Contains(R"(description={\"numemu_unit\":1,\"name\":)"));
}

TEST_CASE("the name of a package is an identifier", "[fast]") {
  CHECK(package_name("out/v1/fp8_mac") == "fp8_mac");
  for (const char* prefix : {"", "out/", "1st", "a-b", "tb.v2"})
    CHECK_THROWS_WITH(package_name(prefix), Contains("--out: expected a prefix whose name has"));
}

}  // namespace
}  // namespace numemu::oracle::sv_package_test
