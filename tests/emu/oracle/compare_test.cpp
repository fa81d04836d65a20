// Two codes: equal under the rules of NaN and zero, and how they differ where they are not.
#include "emu/oracle/verify.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle {
namespace {

struct Case {
  std::uint64_t want, got;
  Mismatch mismatch;
  std::optional<std::uint64_t> ulps;
};

void check(const char* format, const std::vector<Case>& cases) {
  const Comparer comparer(format == nullptr ? nullptr : &find_format(format), 8, {});
  for (const Case& c : cases) {
    INFO((format == nullptr ? "int8" : format) << " " << c.want << " " << c.got);
    for (const auto& [want, got] : {std::pair(c.want, c.got), std::pair(c.got, c.want)}) {
      const Comparison found = comparer.compare(want, got);
      CHECK(name_of(found.mismatch) == name_of(c.mismatch));
      CHECK(found.ulps == c.ulps);
    }
  }
}

TEST_CASE("mismatches have the class that the codes show", "[fast]") {
  using enum Mismatch;
  check("float32", {{0x3f800000, 0x3f800000, none, 0},
                    {0x3f800000, 0x3f800001, one_ulp, 1},
                    {0x3f800000, 0x3f7ffffe, ulps, 2},
                    {0x00000000, 0x80000000, zero_sign, 0},
                    {0x00000000, 0x80000001, flush, 1},
                    {0x00000000, 0x00800000, flush, 0x800000},
                    {0x00000000, 0x00800001, ulps, 0x800001},
                    {0x00000001, 0x80000001, sign, 2},
                    {0x7f7fffff, 0x7f800000, saturation, 1},
                    {0xff7fffff, 0x7f800000, infinity, 0xfeffffff},
                    {0x7f800000, 0x3f800000, infinity, 0x40000000},
                    {0x7fc00000, 0x7f7fffff, nan, std::nullopt},
                    {0x7fc00000, 0x7f800001, none, 0},
                    {0x7fc00000, 0xffc00000, none, 0}});
  // Its NaN is what lies beyond the largest number.
  check("float8_e4m3fn", {{0x7e, 0x7f, saturation, std::nullopt}, {0x7f, 0x38, nan, std::nullopt}});
  check("float8_e5m2fnuz", {{0x80, 0x00, nan, std::nullopt}, {0x01, 0x81, sign, 2}});
  check("e4m3+ftz", {{0x00, 0x01, none, 0}, {0x00, 0x08, flush, 8}});
  check(nullptr, {{0xff, 0x00, one_ulp, 1},
                  {0x7f, 0x85, saturation, 250},
                  {0x7f, 0x7e, one_ulp, 1},
                  {5, 0xfb, sign, 10}});
}

TEST_CASE("rules of NaN", "[fast]") {
  const Format& f = find_format("float32");
  const Comparer canonical(&f, 32, {.nan = NanMatch::canonical}),
      payload(&f, 32, {.nan = NanMatch::payload});
  Comparer unit = canonical;
  unit.set_canonical_nan(0x7fffffff);
  const auto equal = [](const Comparer& c, std::uint64_t want, std::uint64_t got) {
    return c.compare(want, got).mismatch == Mismatch::none;
  };
  CHECK(equal(canonical, 0x7fc00001, 0x7fc00000));
  CHECK_FALSE(equal(canonical, 0x7fc00001, 0x7fc00001));
  CHECK_FALSE(equal(canonical, 0x7fc00000, 0xffc00000));
  CHECK(equal(unit, 0x7fc00000, 0x7fffffff));
  CHECK_FALSE(equal(unit, 0x7fffffff, 0x7fc00000));
  CHECK(equal(payload, 0x7fc00001, 0x7fc00001));
  CHECK_FALSE(equal(payload, 0x7fc00001, 0x7fc00000));
}

TEST_CASE("ulps of a narrower register", "[fast]") {
  Comparer comparer(&find_format("float32"), 32, {});
  comparer.set_narrower_by(10);
  CHECK(comparer.compare(0x3f800000, 0x3f800400).mismatch == Mismatch::one_ulp);
  CHECK(comparer.compare(0x3f800000, 0x3f800001).ulps == 1u);
  CHECK(comparer.compare(0x3f800000, 0x3f800401).ulps == 2u);
}

TEST_CASE("zeros and ulps within the tolerance", "[fast]") {
  const Comparer loose(&find_format("float16"), 16, {.zero = ZeroSign::ignore, .ulps = 2});
  CHECK(loose.compare(0x0000, 0x8000).mismatch == Mismatch::none);
  CHECK(loose.compare(0x8001, 0x0001).mismatch == Mismatch::none);
  CHECK(loose.compare(0x3c00, 0x3c02).mismatch == Mismatch::none);
  CHECK(loose.compare(0x3c00, 0x3c03).mismatch == Mismatch::ulps);
  CHECK(loose.compare(0x7bff, 0x7c00).mismatch == Mismatch::saturation);
  CHECK(loose.without_ulps().compare(0x3c00, 0x3c02).mismatch == Mismatch::ulps);
}

}  // namespace
}  // namespace numemu::oracle
