// Step maps of units of known widths and orders give these widths and orders back.
#include "emu/oracle/identify/step_map.hpp"

#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"

namespace step_map_test {

using namespace numemu;
using namespace numemu::oracle;
using unit::UnitDescription;

namespace {

std::vector<std::string> map_of(const UnitDescription& u, int k, StepVariant variant) {
  const Ports ports = ports_of(u, k);
  return read_step_map(ports, variant, evaluate(u, ports, step_map_dots(ports, variant)));
}
std::vector<int> steps(const UnitDescription& u, int k, StepVariant variant) {
  return steps_of(map_of(u, k, variant));
}

/// Contiguous steps of `width`.
std::vector<int> stretches(int kept, int width) {
  std::vector<int> all;
  for (int k = 0; k < kept; ++k) all.push_back(k / width);
  return all;
}

UnitDescription described(const char* name) { return *unit::find_unit(name).description(); }

/// A fused unit of the catalogue with another width.
UnitDescription with_steps(const char* name, int width, int fraction_bits) {
  UnitDescription u = described(name);
  u.k = 0;
  u.group = width;
  u.alignment.fraction_bits = fraction_bits;
  return u;
}

}  // namespace

TEST_CASE("maps of fused units give back the products of a step", "[fast]") {
  for (const char* name : {"nvidia.h100.wgmma.bf16.f32", "nvidia.h100.wgmma.f16.f16"}) {
    CAPTURE(name);
    for (const int width : {2, 4, 8}) {
      for (const int fraction : {13, 24, 25}) {
        CAPTURE(width, fraction);
        const UnitDescription u = with_steps(name, width, fraction);
        CHECK(steps(u, 16, StepVariant::c_first) == stretches(16, width));
        CHECK(steps(u, 16, StepVariant::c_last) == stretches(16, width));
      }
      // Half an ulp must be kept.
      CHECK(steps(with_steps(name, width, 25), 16, StepVariant::halves) == stretches(16, width));
    }
  }
}

TEST_CASE("a map where half an ulp is lost is no order of steps", "[fast]") {
  const auto map = map_of(with_steps("nvidia.h100.wgmma.bf16.f32", 8, 13), 16, StepVariant::halves);
  CHECK(map[0].find('?') != std::string::npos);
  CHECK(steps_of(map).empty());
}

TEST_CASE("FP8 that is lowered shows its two steps where C enters last", "[fast]") {
  const UnitDescription u = described("nvidia.h100.mma.e4m3.f32");
  REQUIRE(u.order == unit::StepOrder::pairs_mod4);
  std::vector<int> low_first;
  for (int k = 0; k < 32; ++k) low_first.push_back(k % 4 / 2);
  CHECK(steps(u, 32, StepVariant::c_last) == low_first);
  // C first sees one step alone, for nothing meets C before the end.
  CHECK(steps(u, 32, StepVariant::c_first) == std::vector<int>(32, 0));
}

TEST_CASE("types of few exponents still tell which products share a step", "[fast]") {
  const UnitDescription u = described("nvidia.b200.tcgen05.e2m1.f32");
  const Ports ports = ports_of(u, 32);
  CHECK(step_map_dots(ports, StepVariant::c_first).empty());
  UnitDescription narrow = u;
  narrow.k = 0;
  narrow.group = 8;
  CHECK(steps(narrow, 32, StepVariant::halves) == stretches(32, 8));
}

TEST_CASE("a chain shows single products", "[fast]") {
  CHECK(steps(described("nvidia.h100.mma.f64.f64"), 8, StepVariant::c_first) == stretches(8, 1));
  CHECK(steps(described("neutral.f32.sequential"), 8, StepVariant::c_first) == stretches(8, 1));
}

TEST_CASE("a saturating register shows the steps after which it clamps", "[fast]") {
  UnitDescription u = described("nvidia.h100.mma.s8.s32.satfinite");
  CHECK(steps(u, 16, StepVariant::in_saturation) == std::vector<int>(16, 0));
  u.k = 0;
  u.group = 4;
  CHECK(steps(u, 16, StepVariant::in_saturation) == stretches(16, 4));
}

TEST_CASE("steps are numbered only where a map is an order", "[fast]") {
  CHECK(steps_of({"011", "000", "000"}) == std::vector<int>{0, 1, 1});
  CHECK(steps_of({"00", "10"}) == std::vector<int>{1, 0});
  CHECK(steps_of({"01", "10"}).empty());
  CHECK(steps_of({"0?", "00"}).empty());
  CHECK(steps_of({"011", "001", "100"}).empty());
  CHECK(steps_of({}).empty());
}

TEST_CASE("steps are written as stretches of positions", "[fast]") {
  CHECK(step_words({0, 0, 1, 1, 0, 0, 1}) == "0-1 4-5, 2-3 6");
  CHECK(step_words({0, 1, 2}) == "0, 1, 2");
  CHECK(step_words({}).empty());
}

}  // namespace step_map_test
