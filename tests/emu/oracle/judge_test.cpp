// How two codes compare under the rules of NaN and zero; counts, findings and samples of records,
// whatever the batches and threads.
#include "emu/oracle/judge.hpp"

#include <omp.h>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::judge_test {
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
      const CodeComparison found = comparer.compare(want, got);
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

/// All codes of E4M3 to E5M2, several times, with errors at the places that `spoil` chooses.
std::vector<Records> batches(const Subject& s, std::int64_t count, std::int64_t size,
                             std::uint64_t (*spoil)(std::int64_t i, std::uint64_t code)) {
  std::vector<Records> all;
  for (std::int64_t first = 0; first < count; first += size) {
    Records part(layout_of(s), std::min(size, count - first));
    for (std::int64_t i = 0; i < part.size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      part.columns[0][at] = static_cast<std::uint64_t>(first + i) % 256;
      part.line[at] = first + i + 2;
      part.class_of[at] = part.class_number((first + i) % 2 == 0 ? "even" : "odd");
    }
    evaluate(s, part);
    for (std::int64_t i = 0; i < part.size; ++i) {
      std::uint64_t& code = part.columns[1][static_cast<std::size_t>(i)];
      code = spoil(first + i, code);
    }
    all.push_back(std::move(part));
  }
  return all;
}

Subject conversion() {
  return operation_subject(Operation::convert, find_format("float8_e4m3fn"),
                           find_format("float8_e5m2"), {}, Overflow::ieee);
}

TEST_CASE("counts do not depend on batches or threads", "[fast]") {
  const Subject s = conversion();
  const auto spoil = [](std::int64_t i, std::uint64_t code) {
    return i % 100 == 17 ? code ^ 1 : i % 1000 == 30 ? code ^ 0x84 : code;
  };
  const int threads = omp_get_max_threads();
  for (const std::int64_t size : {20000, 4096, 999}) {
    for (const int t : {1, 3}) {
      INFO(size << " records a batch, " << t << " threads");
      omp_set_num_threads(t);
      Judge v(s, {});
      CHECK(v.check(batches(s, 20000, size, spoil)));
      omp_set_num_threads(threads);
      const Tally& tally = v.judged().tally;
      CHECK(tally.records == 20000);
      CHECK(tally.mismatches() == 220);
      CHECK(tally.mismatches() == v.wrong().size());
      CHECK(v.judged().classes.size() == 2);
      CHECK(v.judged().classes[0].name == "even");
      CHECK(v.judged().classes[0].tally.records == 10000);
      REQUIRE(v.judged().first);
      CHECK(v.judged().first->one.number[0] == 17);
      CHECK(v.judged().first->one.records.line[0] == 19);
      CHECK(v.judged().first->comparison.mismatch == Mismatch::one_ulp);
      REQUIRE(v.judged().worst);
      CHECK(v.judged().worst->one.number[0] % 1000 == 30);
      CHECK(v.right().size() <= 4096);
      CHECK(v.right().size() > 2048);
      CHECK(v.right().number.back() > 19000);  // from all over the file
    }
  }
}

TEST_CASE("reading stops at the limit of mismatches", "[fast]") {
  const Subject s = conversion();
  JudgeOptions compared;
  compared.most_mismatches = 3;
  Judge v(s, compared);
  const auto all = batches(s, 1000, 64, [](std::int64_t i, std::uint64_t code) {
    return i % 100 == 17 ? code ^ 1 : code;
  });
  CHECK_FALSE(v.check(all));
  CHECK(v.judged().tally.records == 218);
  CHECK(v.judged().tally.mismatches() == 3);
}

TEST_CASE("flags and unknown digits are compared where there are any", "[fast]") {
  const Subject s = conversion();
  std::vector<Records> one =
      batches(s, 200, 200, [](std::int64_t, std::uint64_t code) { return code; });
  one[0].columns[2][5] ^= 4;
  one[0].unknown[1].assign(200, 0);
  one[0].unknown[1][7] = 15;
  JudgeOptions compared;
  CHECK(Judge(s, compared).check(one));
  compared.flags = true;
  Judge v(s, compared);
  v.check(one);
  CHECK(v.judged().tally.by_mismatch[static_cast<std::size_t>(Mismatch::flags)] == 1);
  CHECK(v.judged().tally.by_mismatch[static_cast<std::size_t>(Mismatch::unknown)] == 1);
  CHECK(v.judged().tally.mismatches() == 2);
  CHECK(v.wrong().size() == 1);
}

TEST_CASE("samples from several batches know which digits are known", "[fast]") {
  const Subject s = conversion();
  std::vector<Records> all = batches(s, 400, 100, [](std::int64_t i, std::uint64_t code) {
    return i % 50 == 17 ? code ^ 1 : code;
  });
  for (const std::size_t batch : {0u, 2u}) {
    all[batch].unknown[1].assign(100, 0);
    all[batch].unknown[1][7] = 15;
  }
  Judge v(s, {});
  v.check(all);
  REQUIRE(v.wrong().size() == 8);
  for (const Sample* sample : {&v.wrong(), &v.right()}) {
    const Records& records = sample->records;
    CHECK(std::ssize(records.unknown[1]) == records.size);
    for (const CodeComparison& c : v.compare(records, records, true))
      CHECK(c.mismatch == Mismatch::none);
  }
}

TEST_CASE("a rule is judged on every bit, without samples where none are wanted", "[fast]") {
  const Subject s = conversion();
  const Tolerance bits{.nan = NanMatch::payload};
  const auto judged = [&](const Rule& rule, const Records& given) {
    Judge judge(s, rule, layout_of(s), {s.to, s.to->bits, bits},
                {.tolerance = bits, .samples = false});
    std::int64_t first = 0;
    CHECK(judge.judge([&](std::int64_t most, Records& to) {
      const std::int64_t n = std::min({most, std::int64_t{100}, given.size - first});
      to = slice(judge.layout(), given, first, n);
      first += n;
      return n != 0;
    }));
    CHECK(judge.wrong().size() + judge.right().size() == 0);
    return judge.judged();
  };
  // As a machine answers that writes -0 as +0 and NaN with its lowest mantissa bit alone.
  const Rule::Change machine = [](Records& records, const Sample&) {
    for (std::uint64_t& code : records.columns[1])
      code = code == 0x80 ? 0 : (code & 0x7f) > 0x7c ? 0x7d : code;
  };
  Records given = batches(s, 256, 256, [](std::int64_t, std::uint64_t code) { return code; })[0];
  machine(given, {});
  const Judged own = judged({}, given);
  CHECK(own.name.empty());
  CHECK(own.tally.records == 256);
  CHECK(own.tally.mismatches() == 3);  // -0 and both NaN of E4M3
  CHECK(own.tally.by_mismatch[static_cast<std::size_t>(Mismatch::zero_sign)] == 1);
  CHECK(own.tally.both_nan == 2);
  REQUIRE(own.first);
  CHECK(own.first->one.number[0] == 0x7f);
  CHECK(own.first->one.records.columns[1][0] == 0x7d);
  const Judged rival = judged({.family = "nan", .name = "lowest bit", .results = machine}, given);
  CHECK(rival.holds());
  CHECK(rival.family == "nan");
  CHECK(rival.tally.records == 256);
}

}  // namespace
}  // namespace numemu::oracle::judge_test
