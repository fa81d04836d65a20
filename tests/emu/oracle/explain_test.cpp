// Faults planted in results by code of their own: the rule that is named, and where results part.
#include "emu/oracle/explain.hpp"

#include <bit>
#include <cmath>
#include <functional>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::explain_test {
namespace {

/// A judge that has checked these records.
Judge verified(const Subject& s, const Records& given, bool flags = false) {
  JudgeOptions compared;
  compared.flags = flags;
  Judge v(s, compared);
  v.check({&given, 1});
  return v;
}

/// The first rule that is named explains every mismatch and contradicts no match.
void check_named(const Explanation& e, const char* family, const char* name) {
  REQUIRE_FALSE(e.of_results.fits.empty());
  const Fit& fit = e.of_results.fits[0];
  CHECK(fit.rule.name == name);
  CHECK(fit.rule.family == family);
  CHECK(fit.explained == e.mismatches);
  CHECK(fit.contradicted == 0);
}

std::uint32_t word(std::int64_t i) {
  return RandomSource{.stream = Stream::vectors}.bits(static_cast<std::uint64_t>(i), 32);
}

/// float32 numbers and what a circuit makes of their words; every eighth is subnormal in bfloat16,
/// every eighth halfway.
Records conversions(const Subject& s, const std::function<std::uint32_t(std::uint32_t)>& circuit) {
  constexpr std::int64_t kCount = 4000;
  Records records(layout_of(s), kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    std::uint32_t x = word(i);
    if (i % 8 == 1) x &= 0x807fffff;
    if (i % 8 == 2) x = (x & 0xffff0000) | 0x8000;
    if ((x & 0x7f800000) == 0x7f800000) x ^= 0x40000000;
    records.columns[0][static_cast<std::size_t>(i)] = x;
    records.columns[1][static_cast<std::size_t>(i)] = circuit(x) & 0xffff;
  }
  return records;
}

std::uint32_t to_nearest_even(std::uint32_t x) { return (x + 0x7fff + (x >> 16 & 1)) >> 16; }

TEST_CASE("faults of a conversion are named", "[fast]") {
  const Subject s = operation_subject(Operation::convert, find_format("float32"),
                                      find_format("bfloat16"), {}, Overflow::ieee);
  struct Fault {
    const char *family, *name;
    std::function<std::uint32_t(std::uint32_t)> circuit;
  };
  const Fault faults[] = {
      {"rounding", "rounding rna in place of rne",
       [](std::uint32_t x) { return (x + 0x8000) >> 16; }},
      {"rounding", "rounding rtz in place of rne", [](std::uint32_t x) { return x >> 16; }},
      {"lost sticky bit", "the rounding sees one bit below the last and no sticky bit",
       [](std::uint32_t x) { return (x >> 16) + (x >> 15 & x >> 16 & 1); }},
      {"flush", "subnormal results become zero, as judged after rounding",
       [](std::uint32_t x) {
         const std::uint32_t y = to_nearest_even(x);
         return (y & 0x7f80) == 0 ? y & 0x8000 : y;
       }},
      // float32 and bfloat16 have the same exponents: a flushed operand is a flushed result.
      {"flush", "subnormal results become zero, as judged before rounding",
       [](std::uint32_t x) {
         return (x & 0x7f800000) == 0 ? x >> 16 & 0x8000 : to_nearest_even(x);
       }},
      {"double rounding", "rounded to tfloat32 (rne) first",
       [](std::uint32_t x) { return to_nearest_even((x + 0xfff + (x >> 13 & 1)) & 0xffffe000); }},
  };
  CHECK(verified(s, conversions(s, to_nearest_even)).judged().tally.mismatches() == 0);
  for (const Fault& fault : faults) {
    INFO(fault.name);
    const Judge v = verified(s, conversions(s, fault.circuit));
    const Explanation e = explain(v);
    check_named(e, fault.family, fault.name);
    CHECK(e.of_results.fits.size() == 1);
    CHECK(e.matches == v.judged().tally.matches());
  }
}

TEST_CASE("right results whose flags are never raised are named as such", "[fast]") {
  for (const Rounding& rounding : {Rounding{}, Rounding{.mode = RoundingMode::rtz}}) {
    const Subject s = operation_subject(Operation::convert, find_format("float32"),
                                        find_format("bfloat16"), rounding, Overflow::ieee);
    Records given = conversions(s, to_nearest_even);
    evaluate(s, given);
    const auto flags = static_cast<std::size_t>(find_field(layout_of(s), "flags"));
    CHECK(verified(s, given, true).judged().tally.mismatches() == 0);
    std::ranges::fill(given.columns[flags], 0);
    const Explanation e = explain(verified(s, given, true));
    REQUIRE(e.of_flags.fits.size() == 1);
    CHECK(e.of_flags.fits[0].rule.name == "flags never raised");
    CHECK(e.of_flags.fits[0].rule.family == "flags");
    CHECK(e.of_flags.fits[0].explained == e.mismatches);
    CHECK(e.of_flags.fits[0].contradicted == 0);
    CHECK(e.of_results.fits.empty());
    // Where flags are not compared, nothing is left to explain.
    CHECK(verified(s, given).judged().tally.mismatches() == 0);
  }
}

TEST_CASE("a file without a match is explained, its flags too", "[fast]") {
  const Subject s = unit_subject(unit::find_unit("nvidia.h100.wgmma.e4m3.f32"), 4);
  Records one(layout_of(s), 1);
  // 1 * 1, and 2 found.
  one.columns[0][0] = one.columns[1][0] = 0x38;
  one.columns[3][0] = 0x40000000;
  const Explanation e = explain(verified(s, one, true));
  CHECK(e.mismatches == 1);
  CHECK(e.matches == 0);
}

TEST_CASE("two faults at once are both named; an unknown fault is not", "[fast]") {
  const Subject s = operation_subject(Operation::convert, find_format("float32"),
                                      find_format("bfloat16"), {}, Overflow::ieee);
  const Records two = conversions(s, [](std::uint32_t x) {
    const std::uint32_t y = (x + 0x8000) >> 16;
    return (y & 0x7f80) == 0 ? y & 0x8000 : y;
  });
  const Explanation both = explain(verified(s, two));
  REQUIRE(both.of_results.fits.size() == 2);
  CHECK(both.of_results.fits[0].rule.family == "flush");
  CHECK(both.of_results.fits[1].rule.family == "rounding");
  CHECK(both.of_results.fits[0].explained + both.of_results.fits[1].alone == both.mismatches);
  // What a rule explains by chance does not count.
  std::int64_t wrong = 0;
  Records mixed = conversions(s, to_nearest_even);
  for (std::size_t i = 2; i < 2000; i += 8) {
    const std::uint64_t away = (mixed.columns[0][i] + 0x8000) >> 16 & 0xffff;
    const bool one = wrong < 4 && away != mixed.columns[1][i];
    wrong += one;
    mixed.columns[1][i] = one ? away : mixed.columns[1][i];
    if (i % 16 == 2) mixed.columns[1][i + 1] ^= 4;
  }
  CHECK(explain(verified(s, mixed)).of_results.fits.empty());
  const Records odd =
      conversions(s, [](std::uint32_t x) { return to_nearest_even(x) ^ (x >> 20 & 4); });
  CHECK(explain(verified(s, odd)).of_results.fits.empty());
}

/// Dots of float32 near 1 with C, and what a kernel makes of them.
Records dots(const Subject& s,
             const std::function<float(const float*, const float*, float)>& kernel) {
  constexpr std::int64_t kCount = 400;
  Records records(layout_of(s), kCount);
  const auto k = static_cast<std::size_t>(s.k);
  std::vector<float> a(k), b(k);
  const auto number = [](std::int64_t i) {
    return std::ldexp(static_cast<float>(static_cast<std::int32_t>(word(i)) >> 8), -22);
  };
  for (std::int64_t i = 0; i < kCount; ++i) {
    for (std::size_t p = 0; p < k; ++p) {
      const std::int64_t at = (i * s.k + static_cast<std::int64_t>(p)) * 2;
      a[p] = number(at);
      b[p] = number(at + 1);
      const std::size_t to = static_cast<std::size_t>(i) * k + p;
      records.columns[0][to] = std::bit_cast<std::uint32_t>(a[p]);
      records.columns[1][to] = std::bit_cast<std::uint32_t>(b[p]);
    }
    const float c = number(i + (1 << 24)) * 8;
    records.columns[2][static_cast<std::size_t>(i)] = std::bit_cast<std::uint32_t>(c);
    records.columns[3][static_cast<std::size_t>(i)] =
        std::bit_cast<std::uint32_t>(kernel(a.data(), b.data(), c));
  }
  return records;
}

TEST_CASE("faults of a kernel are named", "[fast]") {
  const Subject s = unit_subject(unit::find_unit("f32.sequential"), 16, &find_format("float32"));
  const auto chain = [](const float* a, const float* b, float sum) {
    for (int k = 0; k < 16; ++k) sum = std::fma(a[k], b[k], sum);
    return sum;
  };
  CHECK(verified(s, dots(s, chain)).judged().tally.mismatches() == 0);
  struct Fault {
    const char *family, *name;
    std::function<float(const float*, const float*, float)> kernel;
  };
  const Fault faults[] = {
      {"order", "products in descending k",
       [](const float* a, const float* b, float sum) {
         for (int k = 15; k >= 0; --k) sum = std::fma(a[k], b[k], sum);
         return sum;
       }},
      {"C", "C added after rounding",
       [&](const float* a, const float* b, float c) { return chain(a, b, 0) + c; }},
      {"C", "C is not added",
       [&](const float* a, const float* b, float) { return chain(a, b, 0); }},
      {"order", "products rounded before they are added",
       [](const float* a, const float* b, float sum) {
         for (int k = 0; k < 16; ++k) sum = a[k] * b[k] + sum;
         return sum;
       }},
      {"order", "4 chains over k mod 4",
       [](const float* a, const float* b, float c) {
         float sums[4] = {};
         for (int k = 0; k < 16; ++k) sums[k % 4] = std::fma(a[k], b[k], sums[k % 4]);
         return (sums[0] + sums[1]) + (sums[2] + sums[3]) + c;
       }},
  };
  const Explanation pairwise =
      explain(verified(s, dots(s, [](const float* a, const float* b, float c) {
                         float sums[16];
                         for (int k = 0; k < 16; ++k) sums[k] = a[k] * b[k];
                         for (int width = 1; width < 16; width *= 2) {
                           for (int k = 0; k < 16; k += 2 * width) sums[k] += sums[k + width];
                         }
                         return sums[0] + c;
                       })));
  REQUIRE_FALSE(pairwise.of_results.fits.empty());
  CHECK(pairwise.of_results.fits[0].rule.family == "order");
  CHECK(pairwise.of_results.fits[0].explained == pairwise.mismatches);
  for (const Fault& fault : faults) {
    INFO(fault.name);
    check_named(explain(verified(s, dots(s, fault.kernel))), fault.family, fault.name);
  }
}

/// Records with codes of E4M3 or float16 and the results of a description; fewer of long dots.
Records results_of(const Subject& s, const unit::UnitDescription& faulty) {
  Records records(layout_of(s), s.k > 64 ? 150 : 1000);
  for (std::size_t f = 0; f < 2; ++f) {
    for (std::size_t i = 0; i < records.columns[f].size(); ++i) {
      const std::uint32_t w = word(static_cast<std::int64_t>(i + (f << 24)));
      // No NaN and no infinity, exponents near one another; of float16 few bits, so that sums tie.
      records.columns[f][i] =
          s.a->bits == 8 ? (w >> 24 & 0xbf) + 0x10 : (w >> 16 & 0x9fc0) + 0x1000;
    }
  }
  const std::shared_ptr<const unit::Unit> own = unit::make_unit(faulty);
  Subject other = s;
  other.unit = own.get();
  evaluate(other, records);
  return records;
}

struct Fault {
  const char *family, *name;
  std::function<void(unit::UnitDescription&)> plant;
};

/// Each fault alone is what best explains the results of a unit that has it.
template <std::size_t kFaults>
void plant_each(const Subject& s, const unit::UnitDescription& u, const Fault (&faults)[kFaults]) {
  for (const Fault& fault : faults) {
    INFO(fault.name);
    unit::UnitDescription faulty = u;
    faulty.name = "faulty";
    fault.plant(faulty);
    check_named(explain(verified(s, results_of(s, faulty))), fault.family, fault.name);
  }
}

TEST_CASE("faults of a unit of one's own are named", "[fast]") {
  // 8 products and C aligned with 3 more bits and a sticky bit, the sum rounded to float16.
  unit::UnitDescription u;
  u.name = "rtl";
  u.a = u.b = &find_format("float16");
  u.accumulator.format = u.a;
  u.core = unit::CoreKind::fused;
  u.k = u.group = 8;
  u.alignment = {.fraction_bits = 14, .rounding = RoundingMode::rodd, .floor = {}};
  u.nan_code = 0x7e00;
  const std::shared_ptr<const unit::Unit> rtl = unit::make_unit(u);
  const Subject s = unit_subject(*rtl);
  const Fault faults[] = {
      {"rounding", "rounds to nearest, ties away from zero",
       [](auto& d) { d.accumulator.rounding = {.mode = RoundingMode::rna}; }},
      {"flush", "subnormal results flushed to zero",
       [](auto& d) { d.subnormals.flush_results = true; }},
      {"alignment", "addends cut toward zero in the alignment",
       [](auto& d) { d.alignment.rounding = RoundingMode::rtz; }},
  };
  plant_each(s, u, faults);
}

TEST_CASE("faults of a second level of accumulation are named", "[fast]") {
  unit::UnitDescription u = *unit::find_unit("nvidia.h100.wgmma.e4m3.f32").description();
  u.name = "promoted";
  u.outer = {128, {.format = &find_format("float32")}};
  const std::shared_ptr<const unit::Unit> kernel = unit::make_unit(u);
  const Subject s = unit_subject(*kernel, 512);
  const Fault faults[] = {
      {"order", "sums promoted every 64 products instead of 128",
       [](auto& d) { d.outer.every = 64; }},
      {"order", "sums never promoted",
       [](auto& d) {
         d.outer = {};
         d.c = d.d = &find_format("float32");
       }},
      {"rounding", "the outer register keeps 10 fraction bits instead of 23",
       [](auto& d) {
         d.outer.accumulator.format = &find_format("e8m10");
         d.c = d.d = &find_format("float32");
       }},
  };
  plant_each(s, u, faults);
}

TEST_CASE("faults of a tensor core are named with the step that diverges", "[fast]") {
  const unit::Unit& h100 = unit::find_unit("nvidia.h100.wgmma.e4m3.f32");
  const Subject s = unit_subject(h100, 64);
  unit::UnitDescription faulty = *h100.description();
  faulty.name = "faulty";
  faulty.alignment.fraction_bits = 12;
  const Records given = results_of(s, faulty);
  const Judge v = verified(s, given);
  const Explanation e = explain(v);
  check_named(e, "alignment", "12 fraction bits kept instead of 13");
  const std::vector<std::string> lines =
      parting(s, v.judged().first->one.records, &e.of_results.fits[0].rule);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::StartsWith("step ") && Catch::Contains(" against "));
  CHECK_THAT(lines[1], Catch::StartsWith("product of k ") && Catch::Contains(", by the rule "));
}

}  // namespace
}  // namespace numemu::oracle::explain_test
