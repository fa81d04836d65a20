// Traces of every unit: they follow the reference, name what they show, and count without gaps.
#include "emu/unit/reference/trace.hpp"

#include <cstring>
#include <map>

#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace trace_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

/// The k of the products of output (0, 0): all, or those that the metadata keep.
std::map<std::int64_t, int> real_products(const UnitDescription& u, const Gemm& g) {
  std::map<std::int64_t, int> counts;
  if (u.sparsity.dense()) {
    for (std::int64_t k = 0; k < g.k; ++k) counts[k] = 1;
    return counts;
  }
  for (std::int64_t i = 0; i < g.k / u.sparsity.group * u.sparsity.kept; ++i)
    counts[i / u.sparsity.kept * u.sparsity.group + g.kept[i]] = 1;
  return counts;
}

std::uint64_t stored_code(const Unit& unit, const std::vector<std::uint8_t>& d) {
  std::uint64_t code = 0;
  std::memcpy(
      &code, d.data(),
      static_cast<std::size_t>(bytes_of(unit.d_format(), result_register(*unit.description()))));
  return unit.d_format() == nullptr ? code : code >> unit.d_format()->container_shift;
}

/// The kept addends of a step that forms one sum of all it shows.
double sum_of(const TraceStep& step) {
  double sum = 0;
  for (const TraceTerm& t : step.terms) {
    Value kept = t.kept;
    kept.sticky = false;
    sum += to_double(kept);
  }
  return sum;
}

Trace trace_of(const UnitDescription& u, const Gemm& g) {
  Trace trace;
  (void)ReferenceDot(u, g).code(0, 0, &trace);
  return trace;
}

}  // namespace

TEST_CASE("trace: every unit's ends in its bits and shows each product once", "[fast]") {
  std::uint64_t seed = 40;
  for (const Unit* row : all_units()) {
    if (row->description() == nullptr) continue;
    for (const Unit* unit : with_modifiers(*row)) {
      const UnitDescription& u = *unit->description();
      const std::int64_t depth = 3 * (u.k != 0 ? u.k : 8) / 2;
      const std::int64_t group = u.sparsity.dense() ? 1 : u.sparsity.group;
      const std::int64_t k = depth / group * group;
      for (const Data data : {Data::codes, Data::moderate, Data::tiny}) {
        ++seed;
        AnyProduct product(*unit, 1, 1, k, data, seed, seed % 2 == 0);
        INFO(unit->row().name << ", data " << static_cast<int>(data));
        const Trace trace = trace_of(u, product.gemm());
        const std::uint64_t mask = unit->d_format() != nullptr || result_register(u).bits == 64
                                       ? ~std::uint64_t{0}
                                       : (std::uint64_t{1} << result_register(u).bits) - 1;
        CHECK(trace.result == (stored_code(*unit, product.reference()) & mask));
        std::map<std::int64_t, int> seen;
        std::int64_t numbered = 0;
        for (const TraceStep& step : trace.steps) {
          for (const TraceTerm& t : step.terms) {
            if (t.k >= 0) ++seen[t.k];
            if (t.what == "padding") CHECK((t.k == -1 && t.product.kind != Class::finite));
          }
          if (!step.what.starts_with("step ")) continue;
          CHECK_THAT(step.what, Catch::StartsWith("step " + std::to_string(numbered) + ","));
          ++numbered;
        }
        CHECK(seen == real_products(u, product.gemm()));
      }
    }
  }
}

TEST_CASE("trace: what is shown as added is what the sum is made of", "[fast]") {
  for (const char* name : {"nvidia.h100.wgmma.e4m3.f32", "nvidia.h100.wgmma.e4m3.f32.sp24",
                           "nvidia.b200.tcgen05.e4m3.f32.mx32", "neutral.exact",
                           "arm.neoverse.fdot.e4m3.f32", "intel.emr.vpdpbusd.u8xs8.s32"}) {
    const Unit& unit = find_unit(name);
    AnyProduct product(unit, 1, 1, 96, Data::moderate, 5);
    for (const TraceStep& step : trace_of(*unit.description(), product.gemm()).steps) {
      INFO(name << ", " << step.what);
      REQUIRE(step.sum.has_value());
      CHECK(sum_of(step) == to_double(*step.sum));
    }
  }
}

TEST_CASE("trace: C, no C and the register have names of their own", "[fast]") {
  UnitDescription u = unit_of(CoreKind::chain, "float16");
  u.k = 2;
  const auto starts = [&](std::optional<double> c) {
    Trace trace;
    (void)products_of(u, {1, 2, 3, 4, 5}, c).code(&trace);
    std::vector<std::string> names;
    for (const TraceStep& step : trace.steps)
      names.push_back(std::to_string(step.instruction) + " " + step.terms.front().what);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(starts(7) == Names{"0 C", "1 register", "2 register"});
  CHECK(starts({}) == Names{"0 no C", "1 register", "2 register"});
  // C added last: the first instruction's is C, the next one's the register that the first left.
  u.c_entry = CEntry::after_rounding;
  u.chain.chains = 2;
  u.k = 4;
  CHECK(starts(7) == Names{"0 start", "0 start", "0 chain 0", "0 C", "1 start", "1 start",
                           "1 chain 0", "1 register"});
  u = unit_of(CoreKind::chain, "float16");
  u.chain.chunk = 2;
  CHECK(starts(7) == Names{"0 start", "0 C", "0 start", "0 register", "0 start", "0 register"});
}

TEST_CASE("trace: a NaN has the sign of the code that it is written as", "[fast]") {
  // The register is narrower than D, whose NaN it cannot hold.
  UnitDescription u = unit_of(CoreKind::fused, "float16");
  u.accumulator.format = &find_format("e8m13");
  u.d = &find_format("float32");
  u.c = u.d;
  u.nan_code = 0x7fffffff;
  u.alignment.fraction_bits = 13;
  DotCase dot = products_of(u, {1, 2}, 1);
  dot.a[1] = 0xfe00;
  Trace trace;
  CHECK(dot.code(&trace) == 0x7fffffff);
  const std::uint64_t code = trace.steps.at(0).result.value();
  CHECK(code == u.accumulator.format->nan_code());
  CHECK_FALSE(decode(*u.accumulator.format, code).negative);

  // x86 hands the operand's NaN on; its own, of an invalid operation, is negative.
  UnitDescription x = unit_of(CoreKind::chain, "float32");
  x.nan = NanRule::x86;
  x.nan_code = 0xffc00000;
  dot = products_of(x, {1, 2});
  dot.a[0] = 0x7f800001;
  trace = {};
  CHECK(dot.code(&trace) == 0x7fc00001);
  CHECK(trace.steps.at(0).result.value() == 0x7fc00001);
  CHECK_FALSE(trace.steps[0].terms.at(1).after.value().negative);
  dot.a[0] = 0x7f800000;
  dot.b[0] = 0;
  trace = {};
  CHECK(dot.code(&trace) == 0xffc00000);
  CHECK(trace.steps.at(0).result.value() == 0xffc00000);
  CHECK(trace.steps[0].terms.at(1).after.value().negative);

  // A register without NaN has no code for it.
  UnitDescription f = unit_of(CoreKind::chain, "hfp8_e4m3");
  f.a = f.b = &find_format("float16");
  f.nan_code = 0;
  dot = products_of(f, {1});
  dot.a[0] = 0x7e00;
  trace = {};
  (void)dot.code(&trace);
  CHECK_FALSE(trace.steps.at(0).result.has_value());
}

}  // namespace trace_test
