// Exception flags of outputs: as the host raises them in a chain, and by hand for the other cores.
#include <bit>
#include <cfenv>
#include <cmath>

#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace dot_flags_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

std::uint8_t host_flags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return static_cast<std::uint8_t>(((raised & FE_INEXACT) != 0 ? kInexact : 0) |
                                   ((raised & FE_UNDERFLOW) != 0 ? kUnderflow : 0) |
                                   ((raised & FE_OVERFLOW) != 0 ? kOverflow : 0) |
                                   ((raised & FE_INVALID) != 0 ? kInvalid : 0));
}

/// Flags of products times one plus C.
int flags_of(UnitDescription u, const std::vector<double>& a, const std::vector<double>& b,
             double c) {
  check_description(u);
  const Gather rows = Gather::matrix(1, static_cast<std::int64_t>(a.size()));
  const auto bytes_a = stored(codes_of(*u.a, a), container_bytes(*u.a), u.a->container_shift);
  const auto bytes_b = stored(codes_of(*u.b, b), container_bytes(*u.b), u.b->container_shift);
  const auto bytes_c =
      stored({code_of_number(*u.accumulator.format, c)}, container_bytes(*u.accumulator.format));
  Gemm g;
  g.m = g.n = 1;
  g.k = static_cast<std::int64_t>(a.size());
  g.a = {u.a, bytes_a.data(), &rows};
  g.b = {u.b, bytes_b.data(), &rows};
  g.c = bytes_c.data();
  return ReferenceDot(u, g).outcome(0, 0, 0, 0).flags;
}

UnitDescription fused(int fraction_bits) {
  UnitDescription u = unit_of(CoreKind::fused, "float32");
  u.a = u.b = &find_format("float16");
  u.k = u.group = 4;
  u.alignment.fraction_bits = fraction_bits;
  u.accumulator.rounding = {.mode = RoundingMode::rtz};
  return u;
}

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("flags: a chain raises what this CPU raises in fused multiply-adds", "[fast]") {
  const Unit& unit = find_unit("neutral.f32.sequential");
  Dice dice(11);
  int seen[32] = {};
  for (int run = 0; run < 20000; ++run) {
    const auto k = 1 + dice.below(3);
    std::vector<float> a, b;
    for (std::int64_t i = 0; i < k; ++i) {
      a.push_back(any_float(dice));
      b.push_back(any_float(dice));
    }
    const float c = any_float(dice);
    const Gather rows = Gather::matrix(1, k);
    Gemm g;
    g.m = g.n = 1;
    g.k = k;
    g.a = g.b = {&find_format("float32"), a.data(), &rows};
    g.b.codes = b.data();
    g.c = &c;
    const Outcome outcome = ReferenceDot(*unit.description(), g).outcome(0, 0, 0, 0);
    std::feclearexcept(FE_ALL_EXCEPT);
    volatile float sum = c;
    for (std::size_t i = 0; i < a.size(); ++i) sum = std::fma(a[i], b[i], sum);
    std::uint8_t host = host_flags();
    // Beside a NaN, x86 raises nothing for zero times infinity, Arm and this unit do.
    for (std::size_t i = 0; i < a.size(); ++i)
      if ((a[i] == 0 && std::isinf(b[i])) || (std::isinf(a[i]) && b[i] == 0)) host |= kInvalid;
    INFO(a[0] << " * " << b[0] << " + " << c << ", K " << k);
    REQUIRE(int{outcome.flags} == int{host});
    ++seen[host];
  }
  for (const int flags : {0, 1, 3, 5, 16}) CHECK(seen[flags] > 0);
}

TEST_CASE("flags: fused steps raise inexact for bits cut in the alignment", "[fast]") {
  CHECK(flags_of(fused(30), {1024, 0x1p-10}, {1, 1}, 0) == 0);
  CHECK(flags_of(fused(13), {1024, 0x1p-10}, {1, 1}, 0) == kInexact);
  CHECK(flags_of(fused(30), {1024, 0x1p-20}, {1, 1}, 0) == kInexact);  // by the register
  CHECK(flags_of(fused(30), {kInf, 1}, {0, 1}, 0) == kInvalid);
  CHECK(flags_of(fused(30), {kInf, -kInf}, {1, 1}, 0) == kInvalid);
  CHECK(flags_of(fused(30), {kInf, 1}, {1, 1}, 0) == 0);
  CHECK(flags_of(fused(30), {std::nan(""), kInf}, {1, 0}, 0) == kInvalid);
  CHECK(flags_of(fused(30), {std::nan(""), kInf}, {1, 1}, -kInf) == 0);  // a NaN operand is none
  CHECK(flags_of(fused(30), {32768, 1}, {32768, 1}, 3.4e38) == kInexact);
  UnitDescription half = fused(30);
  half.accumulator.format = &find_format("float16");
  half.nan_code = half.accumulator.format->nan_code();
  CHECK(flags_of(half, {32768}, {32768}, 0) == (kOverflow | kInexact));
  CHECK(flags_of(half, {0x1p-14, 0}, {0x1p-14, 0}, 0) == (kUnderflow | kInexact));
  CHECK(flags_of(half, {0x1p-14}, {0x1p-2}, 0) == 0);  // an exact subnormal
}

TEST_CASE("flags: zero times infinity beside a NaN is invalid but on x86", "[fast]") {
  const double nan = std::nan("");
  for (const CoreKind core : {CoreKind::chain, CoreKind::tree, CoreKind::exact}) {
    const UnitDescription u = unit_of(core, "float32");
    CHECK(flags_of(u, {0}, {kInf}, nan) == kInvalid);
    CHECK(flags_of(u, {nan, kInf}, {1, 0}, 1) == kInvalid);
    CHECK(flags_of(u, {nan, kInf}, {1, 1}, 1) == 0);
  }
  UnitDescription x86 = unit_of(CoreKind::chain, "float32");
  x86.nan = NanRule::x86;
  CHECK(flags_of(x86, {0}, {kInf}, nan) == 0);
  CHECK(flags_of(x86, {0}, {kInf}, 1) == kInvalid);
  CHECK(find_unit("intel.emr.vfmadd231ph.f16.f16").description()->nan == NanRule::x86);
}

TEST_CASE("flags: trees, exact sums, a late C and flushed results", "[fast]") {
  UnitDescription tree = unit_of(CoreKind::tree, "float32");
  tree.group = 2;
  CHECK(flags_of(tree, {1, 1}, {1, 1}, 1) == 0);
  CHECK(flags_of(tree, {1, 0x1p-30}, {1, 1}, 1) == kInexact);
  CHECK(flags_of(tree, {kInf, 1}, {0, 1}, 1) == kInvalid);
  tree.tree.round_products = false;
  CHECK(flags_of(tree, {kInf, 1}, {0, 1}, 1) == kInvalid);
  UnitDescription exact = unit_of(CoreKind::exact, "float32");
  CHECK(flags_of(exact, {1, 0x1p-30, -0x1p-30}, {1, 1, 1}, 1) == 0);
  CHECK(flags_of(exact, {kInf, 1}, {1, 1}, -kInf) == kInvalid);
  UnitDescription late = fused(30);
  late.c_entry = CEntry::after_rounding;
  CHECK(flags_of(late, {1}, {1}, 0x1p-30) == kInexact);
  CHECK(flags_of(late, {kInf}, {1}, -kInf) == kInvalid);
  UnitDescription flushes = unit_of(CoreKind::chain, "float32");
  flushes.subnormals.flush_results = true;
  CHECK(flags_of(flushes, {0x1p-100}, {0x1p-40}, 0) == (kUnderflow | kInexact));
}

}  // namespace dot_flags_test
