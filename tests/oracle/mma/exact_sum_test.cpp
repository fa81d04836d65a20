// Units whose step loses nothing, against exact sums by Boost.Multiprecision.
#include "tests/oracle/mma/exact_sum.hpp"

#include <memory>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/golden_files.hpp"
#include "tests/oracle/mma/random_batch.hpp"

namespace numemu::oracle::mma::exact_sum_test {
namespace {

using unit::Unit;

Value times(const Value& v, const Value& scale) {
  if (scale.kind != Class::finite || v.kind != Class::finite) {
    const bool nan = scale.kind == Class::nan || v.kind == Class::nan ||
                     (scale.kind == Class::zero && v.kind == Class::infinite);
    if (nan) return {.kind = Class::nan};
    return scale.kind == Class::zero ? Value{.negative = v.negative} : v;
  }
  Value product = v;
  product.significand *= scale.significand;
  product.exponent += scale.exponent;
  return product;
}

/// Element (row, k) of an operand, with its scale.
Value factor(const Batch& batch, const Unit& unit, bool of_a, std::int64_t row, std::int64_t k) {
  const Format* format = of_a ? batch.a_format : batch.b_format;
  const Value v = decode(*format, get_code(of_a ? batch.a : batch.b, row * batch.k + k, format));
  const auto& scaling = unit.description()->scaling;
  if (scaling.format == nullptr) return v;
  const std::int64_t blocks = (batch.k + scaling.block - 1) / scaling.block;
  const std::string& scales = of_a ? batch.scale_a : batch.scale_b;
  Value scale =
      decode(*scaling.format, get_code(scales, row * blocks + k / scaling.block, scaling.format));
  scale.negative = false;  // the unit ignores the sign bit
  return times(v, scale);
}

std::uint32_t expected(const Batch& batch, const Unit& unit, std::int64_t i, std::int64_t j,
                       RoundingMode mode) {
  std::vector<std::pair<Value, Value>> factors;
  for (std::int64_t k = 0; k < batch.k; ++k)
    factors.emplace_back(factor(batch, unit, true, i, k), factor(batch, unit, false, j, k));
  const Format& float32 = *unit.c_format();
  const Value c = decode(float32, get_code(batch.c, i * batch.n + j, &float32));
  return exact_sum(factors, c, mode);
}

/// D by the unit: the one of the catalogue, or one made for the test.
std::string computed_by(const Unit& unit, const Batch& batch, bool reference) {
  std::string d = batch.d;
  const auto rows = unit::Gather::matrix(batch.m, batch.k);
  const auto columns = unit::Gather::matrix(batch.n, batch.k);
  unit::Gemm g;
  g.m = batch.m;
  g.n = batch.n;
  g.k = batch.k;
  g.a = {batch.a_format, batch.a.data(), &rows};
  g.b = {batch.b_format, batch.b.data(), &columns};
  g.c = batch.c.data();
  g.d = d.data();
  if (!batch.scale_a.empty()) {
    g.scale_a = reinterpret_cast<const std::uint8_t*>(batch.scale_a.data());
    g.scale_b = reinterpret_cast<const std::uint8_t*>(batch.scale_b.data());
  }
  reference ? unit.multiply_reference(g) : unit.multiply(g);
  return d;
}

struct Count {
  std::int64_t records = 0, mismatches = 0;
  std::string first;
};

void compare_to_exact(const Unit& unit, const Batch& batch, RoundingMode mode, bool minus_zero,
                      Count& count) {
  const Format* float32 = unit.d_format();
  for (const bool reference : {true, false}) {
    const std::string d = computed_by(unit, batch, reference);
    for (std::int64_t e = 0; e < batch.m * batch.n; ++e) {
      std::uint64_t want = expected(batch, unit, e / batch.n, e % batch.n, mode);
      if (!minus_zero && want == 0x80000000u) want = 0;
      const std::uint64_t got = get_code(d, e, float32);
      ++count.records;
      if (got == want) continue;
      if (count.mismatches++ == 0) {
        char text[96];
        std::snprintf(text, sizeof text, "%s: %08x, exact sum %08x",
                      reference ? "reference" : "fast", static_cast<unsigned>(got),
                      static_cast<unsigned>(want));
        count.first = unit.row().name + ", " + text;
      }
    }
  }
}

void conclude(const Count& count) {
  WARN("against exact sums: " << count.records << " records, " << count.mismatches
                              << " mismatches");
  INFO(count.first);
  CHECK(count.records > 0);
  CHECK(count.mismatches == 0);
}

TEST_CASE("exact sums: neutral.exact and its scaled kinds", "[fast]") {
  Count count;
  Words words(1);
  for (const char* name :
       {"neutral.exact", "neutral.exact.mx32", "neutral.exact.mx16", "neutral.exact.nv16"}) {
    const Unit& unit = unit::find_unit(name);
    for (const char* format : {"float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float16",
                               "bfloat16", "tfloat32", "float32"}) {
      const bool scaled = unit.description()->scaling.format != nullptr;
      if (!unit.accepts(find_format(format)) || (scaled && find_format(format).bits > 16)) continue;
      for (const Codes codes : {Codes::all, Codes::middle}) {
        for (int repeat = 0; repeat < 8; ++repeat) {
          const Batch batch = random_batch(unit, 4, 6, 48, codes, words, &find_format(format));
          compare_to_exact(unit, batch, RoundingMode::rne, true, count);
        }
      }
    }
  }
  conclude(count);
}

// With C drawn from float16, every addend is a multiple of 2^-69 when the largest is below 2^32:
// 100 bits below the largest exponent lose nothing.
TEST_CASE("exact sums: a fused step that keeps 100 bits rounds the exact sum once", "[fast]") {
  const Format &float32 = find_format("float32"), &float16 = find_format("float16");
  Count count;
  Words words(2);
  for (const char* format :
       {"float4_e2m1fn", "float6_e3m2fn", "float8_e4m3fn", "float8_e5m2", "float16"}) {
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rtz}) {
      for (const auto& zero_exponent : {std::optional<int>(), std::optional<int>(-40)}) {
        unit::UnitDescription u;
        u.name = "test.fused";
        u.core = unit::CoreKind::fused;
        u.a = u.b = &find_format(format);
        u.c = &float32;
        u.accumulator.format = &float32;
        u.accumulator.rounding.mode = mode;
        u.accumulator.overflow_to_infinity = mode == RoundingMode::rtz;
        u.k = u.group = 16;
        u.alignment.fraction_bits = 100;
        u.alignment.zero_exponent = zero_exponent;
        u.alignment.floor = std::nullopt;
        const auto unit = unit::make_unit(u);
        for (int repeat = 0; repeat < 20; ++repeat) {
          Batch batch = random_batch(*unit, 4, 6, 16, Codes::all, words, u.a);
          std::string halves;
          for (std::int64_t i = 0; i < 24; ++i) {
            const std::uint32_t code = words.next();
            halves.append({static_cast<char>(code), static_cast<char>(code >> 8)});
          }
          batch.c = converted(halves, float16, float32);
          compare_to_exact(*unit, batch, mode, false, count);
        }
      }
    }
  }
  conclude(count);
}

// One product: a fused multiply-add, for any operands.
TEST_CASE("exact sums: one step of the sequential chain is a fused multiply-add", "[fast]") {
  Count count;
  Words words(3);
  const Unit& unit = unit::find_unit("neutral.f32.sequential");
  for (const char* format : {"float32", "bfloat16", "float16"})
    for (int repeat = 0; repeat < 20; ++repeat)
      compare_to_exact(unit, random_batch(unit, 8, 8, 1, Codes::all, words, &find_format(format)),
                       RoundingMode::rne, true, count);
  conclude(count);
}

}  // namespace
}  // namespace numemu::oracle::mma::exact_sum_test
