// Tables of laws: published figures of a normal law, files, and what is refused.
#include <algorithm>
#include <cmath>
#include <string>

#include "experiments/search/ranking.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace search_laws_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

double db_of(const ResultTable& table, const std::string& option) {
  for (const std::vector<std::string>& row : table.rows)
    if (row[0] == option) return std::stod(row[2]);
  FAIL("no row " << option);
  return 0;
}

}  // namespace

TEST_CASE("a normal law at 4.5 bits: figures known from elsewhere", "[fast]") {
  const ResultTable table = law_table(
      "normal", space_of({.formats = {"e2m1", "int4"}, .blocks = {16, 32}}, "weight"), 4.5, 0);
  // mechanisms of NVFP4: 20.44 dB with absmax. 2^17 draws: 0.5 % of the error, 0.02 dB; 4 of them.
  CHECK(db_of(table, "float4_e2m1fn, float8_e4m3fn per 16 and float32 per tensor, absmax") ==
        Approx(20.44).margin(0.1));
  // Of 16 uniform levels the least error is 0.01154 (Max 1960, table II); int4 has 15 of them.
  const ResultTable whole = law_table(
      "normal", space_of({.formats = {"int4"}, .blocks = {16}, .rules = {"mse"}}, "weight"), 4.5,
      0);
  CHECK(db_of(whole, "int4, one float32 per tensor, mse") < 19.38);
  CHECK(db_of(whole, "int4, one float32 per tensor, mse") > 18.5);
  // The same with the best scales, and with the better of two; 21.22 and 21.81 dB.
  CHECK(db_of(table, "float4_e2m1fn, float8_e4m3fn per 16 and float32 per tensor, four-over-six") ==
        Approx(21.22).margin(0.1));
  CHECK(db_of(table, "float4_e2m1fn, float8_e4m3fn per 16 and float32 per tensor, mse") ==
        Approx(21.81).margin(0.1));
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    if (table.rows[i][0].starts_with("Lloyd")) break;
    CHECK(std::stod(table.rows[i - 1][2]) >= std::stod(table.rows[i][2]));
  }
}

TEST_CASE("progress of a law reaches the integrals that are announced", "[fast]") {
  const std::vector<SearchOption> options =
      space_of({.formats = {"int3"}, .blocks = {32}, .scales = {"float8_e4m3fn"}}, "activation");
  double done = 0, total = 0;
  std::size_t calls = 0;
  bool rises = true;
  const OnWork told = [&](const WorkState& at) {
    rises = rises && at.phase == "normal" && at.done >= done;
    done = at.done;
    total = at.total;
    ++calls;
  };
  std::vector<SearchOption> all = options;
  for (SearchOption& option : all) option.searched = option.rule == "four-over-six";
  Work work(told, integrals_of(all));
  law_table("normal", all, 4.5, 0, &work);
  CHECK(total == static_cast<double>(options.size() - 1) + kSearchedIntegrals);
  CHECK(done == total);
  CHECK(calls > 3);
  CHECK(rises);
}

TEST_CASE("limits of a law are those of the law, not of the draws beside them", "[fast]") {
  const std::vector<SearchOption> options =
      space_of({.formats = {"int4"}, .blocks = {16}}, "weight");
  const ResultTable light = law_table("normal", options, 4.5, 0);
  CHECK(light.header.at(3) == "at 95 %");
  CHECK(light.rows[0].at(3).starts_with("+-0.0"));
  for (const std::vector<std::string>& row : light.rows)
    CHECK(row.at(3).empty() == (row[0].find(" per 16") == std::string::npos));
  // Student's t of 2.5 degrees has a variance of 5; draws show more or less of it.
  const ResultTable heavy = law_table("student-t:2.5", options, 4.5, 0);
  CHECK(heavy.header.size() == 4);
  CHECK_THAT(heavy.title, Catch::Contains("too heavy"));
  const std::vector<std::string>& limit = *std::ranges::find_if(
      heavy.rows, [](const auto& row) { return row[0].starts_with("Lloyd-Max, 16"); });
  CHECK(std::stod(limit[2]) == Approx(10 * std::log10(5 / std::stod(limit[3]))).margin(0.006));
}

TEST_CASE("numbers of a file, and what has no table", "[fast]") {
  const TemporaryFolder folder;
  const std::vector<SearchOption> options =
      space_of({.formats = {"int4"}, .blocks = {8}}, "weight");
  std::vector<float> x(64);
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i % 15 - 7);
  write_npy(folder / "x.npy", ArrayType::float32, {8, 8}, x.data());
  const ResultTable table = law_table(folder / "x.npy", options, 8, 0);
  CHECK(db_of(table, "int4, one float32 per tensor, absmax") > 100);  // all on the grid
  CHECK_THROWS_WITH(law_table(folder / "x.npy", options, 3, 0), Catch::Contains("--bits"));
  x[5] = HUGE_VALF;
  write_npy(folder / "y.npy", ArrayType::float32, {8, 8}, x.data());
  CHECK_THROWS_WITH(law_table(folder / "y.npy", options, 8, 0), Catch::Contains("finite"));
  for (const float constant : {0.0f, 3.0f}) {
    const std::vector<float> alike(8, constant);
    write_npy(folder / "z.npy", ArrayType::float32, {8}, alike.data());
    CHECK_THROWS_WITH(law_table(folder / "z.npy", options, 8, 0),
                      Catch::Contains("expected numbers that differ, found 8 times"));
  }
  CHECK_THROWS_AS(law_table("nromal", options, 8, 0), Error);
  CHECK_THROWS_AS(law_table("lognormal:100", options, 8, 0), Error);
}

}  // namespace search_laws_test
