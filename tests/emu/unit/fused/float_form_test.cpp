// The float form of fused FP8 units: equal to the reference in every bit, or declined.
#include "emu/unit/fused/float_form.hpp"

#include <omp.h>

#include "emu/unit/fused/float_form_tile.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/fused/form_problem.hpp"

namespace float_form_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

/// Formats of A and B, every mix.
struct Mix {
  const char *a, *b;
};
constexpr Mix kMixes[] = {{"float8_e4m3fn", "float8_e4m3fn"},
                          {"float8_e4m3fn", "float8_e5m2"},
                          {"float8_e5m2", "float8_e4m3fn"},
                          {"float8_e5m2", "float8_e5m2"}};

std::int64_t mismatches(const FormProblem& p) { return form_mismatches(multiply_fused_float, p); }

/// The units whose form this CPU has: it takes fused multiply-adds, with a float16 register x86.
/// Says which it has not.
std::vector<UnitDescription> units() {
  std::vector<UnitDescription> available;
  for (const UnitDescription& unit : {wgmma_e4m3(), ada_f32(), ada_f16()}) {
    const std::string& reg = unit.accumulator.format->name;
    if (float_form_available(reg == "float16"))
      available.push_back(unit);
    else
      WARN("skipped: this CPU has no float form with a register of " << reg);
  }
  return available;
}

}  // namespace

TEST_CASE("float form: every kind of data and of C, every mix of formats", "[fast]") {
  std::uint64_t seed = 0;
  int declined = 0;
  const std::vector<UnitDescription> available = units();
  for (const UnitDescription& unit : available) {
    for (const Mix& mix : kMixes) {
      for (const FormData data : kAllFormData) {
        for (const CData c : kAllC) {
          const FormProblem p = make_form_problem({unit, mix.a, mix.b, 5, 19, 96, data, c}, ++seed);
          INFO(unit.group << " " << unit.accumulator.format->name << " " << mix.a << " " << mix.b
                          << " data " << static_cast<int>(data) << " C " << static_cast<int>(c));
          const std::int64_t differing = mismatches(p);
          // A C below what zero products can reach is left to others.
          if (c == CData::tiny && !p.half() && differing != 0) {
            CHECK(differing == -1);
            ++declined;
          } else {
            CHECK(differing == 0);
          }
        }
      }
    }
  }
  CHECK((declined > 0 || available.empty()));
}

TEST_CASE("float form: shapes, layouts and tails of K", "[fast]") {
  for_each_shape(units(), [](const FormProblem& p) { CHECK(mismatches(p) == 0); });
}

TEST_CASE("float form: gathers with padding, dilation and stride", "[fast]") {
  std::uint64_t seed = 2000;
  for (const UnitDescription& unit : units()) {
    for (const Convolution& shape : kConvolutions)
      CHECK(mismatches(make_form_convolution(unit, shape, 6, ++seed)) == 0);
  }
}

TEST_CASE("float form: fraction bits, groups and registers up to the proven limit", "[fast]") {
  std::uint64_t seed = 3000;
  for (const int group : {4, 8, 16, 32, 64}) {
    for (const int fraction_bits : {1, 7, 10, 13, 14, 15, 16, 17, 18}) {
      for (const char* reg : {"e8m13", "float32", "float16"}) {
        const UnitDescription unit = fp8_unit(64, group, reg, fraction_bits);
        const FormProblem p = make_form_problem(
            {unit, "float8_e5m2", "float8_e4m3fn", 3, 17, 130, FormData::gaussian, CData::gaussian},
            ++seed);
        INFO(group << " F " << fraction_bits << " " << reg);
        const bool declines = 4 * group + 2 > 1 << (23 - fraction_bits) ||
                              !float_form_available(std::string(reg) == "float16");
        CHECK(mismatches(p) == (declines ? -1 : 0));
      }
    }
  }
}

TEST_CASE("float form: sums at the upper end of what a group can reach", "[fast]") {
  for (const UnitDescription& unit : units()) {
    for (const Mix& mix : kMixes) {
      FormProblem p = make_form_problem({unit, mix.a, mix.b, 2, 3, 64}, 1);
      const auto largest_a = static_cast<std::uint8_t>(p.a.format->largest_code());
      const auto largest_b = static_cast<std::uint8_t>(p.b.format->largest_code());
      for (auto& code : p.a.bytes) code = largest_a;
      for (std::size_t i = 0; i < p.b.bytes.size(); ++i)
        p.b.bytes[i] = i < 64 ? largest_b : largest_b | 0x80;
      CHECK(mismatches(p) == 0);
    }
  }
}

TEST_CASE("float form: declines what it does not cover", "[fast]") {
  if (units().empty()) return;
  const auto declined = [](const UnitDescription& unit) {
    return mismatches(make_form_problem({unit, "float8_e4m3fn", "float8_e4m3fn", 2, 3, 32}, 1));
  };
  UnitDescription unit = wgmma_e4m3();
  CHECK(declined(unit) == 0);
  unit.order = StepOrder::pairs_mod4;
  CHECK(declined(unit) == -1);
  unit = wgmma_e4m3();
  unit.core = CoreKind::exact;
  CHECK(declined(unit) == -1);
  FormProblem huge = make_form_problem({wgmma_e4m3(), "float8_e4m3fn", "float8_e4m3fn", 2, 3, 32,
                                        FormData::gaussian, CData::gaussian},
                                       1);
  huge.c[1] = 0x1p120f;
  CHECK(mismatches(huge) == -1);
}

TEST_CASE("float form: 1, 2 and 3 threads give the same bits", "[fast]") {
  if (units().empty()) return;
  const int before = omp_get_max_threads();
  const FormProblem p = make_form_problem({wgmma_e4m3(), "float8_e4m3fn", "float8_e4m3fn", 131, 197,
                                           100, FormData::uniform, CData::mixed},
                                          4000);
  std::vector<std::uint8_t> one, more;
  omp_set_num_threads(1);
  REQUIRE(multiply_fused_float(p.unit, p.gemm(one)));
  for (const int threads : {2, 3}) {
    omp_set_num_threads(threads);
    REQUIRE(multiply_fused_float(p.unit, p.gemm(more)));
    CHECK(one == more);
  }
  omp_set_num_threads(before);
}

TEST_CASE("float form: several slices of K, blocks of rows and tiles", "[slow]") {
  for (const UnitDescription& unit : units()) {
    CHECK(mismatches(make_form_problem({unit, "float8_e4m3fn", "float8_e4m3fn", 260, 66, 530,
                                        FormData::gaussian, CData::mixed},
                                       5000)) == 0);
    CHECK(mismatches(make_form_problem({unit, "float8_e5m2", "float8_e4m3fn", 5, 530, 530,
                                        FormData::wide_sparse, CData::none},
                                       5001)) == 0);
  }
}

}  // namespace float_form_test
