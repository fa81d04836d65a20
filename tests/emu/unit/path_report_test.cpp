// Fast paths as users are told about them: named, and what is in the way of one.
#include "emu/unit/path_report.hpp"

#include "emu/unit/fast_paths.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"

namespace path_report_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

UnitDescription own(const char* name) {
  UnitDescription u = *find_unit(name).description();
  u.name = "own";
  return u;
}

}  // namespace

TEST_CASE("path report: a path is named exactly where an ordinary product takes one", "[fast]") {
  int with = 0, without = 0;
  for (const Unit* unit : all_units()) {
    const UnitDescription* u = unit->description();
    if (u == nullptr) continue;
    INFO(unit->row().name);
    const bool named = !path_report(*u).path.empty();
    const char* any = u->core == CoreKind::xnor    ? "sign1"
                      : u->core == CoreKind::exact ? "float16"
                                                   : "float32";
    const AnyProduct product(*unit, 4, 16, 64, Data::moderate, 1, false, any);
    CHECK(named == multiply_fast(*u, product.gemm()));
    ++(named ? with : without);
  }
  CHECK(with > 10 * without);
}

TEST_CASE("path report: paths over paths", "[fast]") {
  CHECK(path_report(own("f32.sequential")).path == "float chain");
  UnitDescription u = own("h100.wgmma.e4m3.f32");
  CHECK_THAT(path_report(u).path, Contains("fused"));
  u.outer = {128, {.format = &find_format("float32")}};
  CHECK(path_report(u).path.starts_with("two levels over fused"));
  CHECK(path_report(own("h100.wgmma.e4m3.f32.sp24")).path.starts_with("row by row over fused"));
}

TEST_CASE("path report: C and D that are left to the register take the same path", "[fast]") {
  for (const char* name : {"neutral.exact", "f32.sequential", "nvidia.a100.mma.f64.f64",
                           "nvidia.b200.tcgen05.e2m1.f32.nv16", "nvidia.h100.mma.f16.f32"}) {
    UnitDescription u = own(name);
    const std::string path = path_report(u).path;
    u.c = u.d = nullptr;
    INFO(name);
    CHECK(path_report(u).path == path);
    const auto unit = make_unit(u);
    AnyProduct product(*unit, 3, 18, 70, Data::codes, 2, true, "float16");
    CHECK(product.mismatches() == 0);
  }
}

TEST_CASE("path report: what is in the way", "[fast]") {
  UnitDescription u = own("h100.wgmma.e4m3.f32");
  u.products_overflow = true;
  const PathReport report = path_report(u);
  CHECK(report.path.empty());
  REQUIRE(report.changes.size() == 1);
  CHECK(report.changes[0].key == "products_overflow");
  CHECK(report.changes[0].own == "true");
  CHECK(report.changes[0].other == "false");
  CHECK_THAT(report.like, Contains("e4m3"));
  CHECK_THAT(report.other_path, Contains("fused"));
}

}  // namespace path_report_test
