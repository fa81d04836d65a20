// Counts, findings and samples of records, whatever the batches and threads.
#include "emu/oracle/verify.hpp"

#include <omp.h>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle {
namespace {

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
      Verifier v(s, {});
      CHECK(v.check(batches(s, 20000, size, spoil)));
      omp_set_num_threads(threads);
      const Tally& tally = v.tally();
      CHECK(tally.records == 20000);
      CHECK(tally.mismatches() == 220);
      CHECK(tally.mismatches() == v.wrong().size());
      CHECK(v.classes().size() == 2);
      CHECK(v.classes()[0].name == "even");
      CHECK(v.classes()[0].tally.records == 10000);
      REQUIRE(v.first());
      CHECK(v.first()->one.number[0] == 17);
      CHECK(v.first()->one.records.line[0] == 19);
      CHECK(v.first()->comparison.mismatch == Mismatch::one_ulp);
      REQUIRE(v.worst());
      CHECK(v.worst()->one.number[0] % 1000 == 30);
      CHECK(v.right().size() <= 4096);
      CHECK(v.right().size() > 2048);
      CHECK(v.right().number.back() > 19000);  // from all over the file
    }
  }
}

TEST_CASE("reading stops at the limit of mismatches", "[fast]") {
  const Subject s = conversion();
  Compared compared;
  compared.most_mismatches = 3;
  Verifier v(s, compared);
  const auto all = batches(s, 1000, 64, [](std::int64_t i, std::uint64_t code) {
    return i % 100 == 17 ? code ^ 1 : code;
  });
  CHECK_FALSE(v.check(all));
  CHECK(v.tally().records == 218);
  CHECK(v.tally().mismatches() == 3);
}

TEST_CASE("flags and unknown digits are compared where there are any", "[fast]") {
  const Subject s = conversion();
  std::vector<Records> one =
      batches(s, 200, 200, [](std::int64_t, std::uint64_t code) { return code; });
  one[0].columns[2][5] ^= 4;
  one[0].unknown[1].assign(200, 0);
  one[0].unknown[1][7] = 15;
  Compared compared;
  CHECK(Verifier(s, compared).check(one));
  compared.flags = true;
  Verifier v(s, compared);
  v.check(one);
  CHECK(v.tally().by_mismatch[static_cast<std::size_t>(Mismatch::flags)] == 1);
  CHECK(v.tally().by_mismatch[static_cast<std::size_t>(Mismatch::unknown)] == 1);
  CHECK(v.tally().mismatches() == 2);
  CHECK(v.wrong().size() == 1);
}

}  // namespace
}  // namespace numemu::oracle
