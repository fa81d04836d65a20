// Rows paired by their answers: who is best, by how much, and who is not told apart.
#include "experiments/report/pairs.hpp"

#include "experiments/engine/answers.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;

namespace {

/// Of 2,000 samples the first `wrong` are wrong, and the last `other`.
Json row(std::size_t at, std::size_t format, std::size_t wrong, std::size_t other, double sqnr,
         const char* unit = "exact") {
  Json out = sample::row(at, &sample::kFormats[format], &sample::kFormats[format], unit);
  std::vector<std::uint8_t> right(2000, 1);
  for (std::size_t i = 0; i < wrong; ++i) right[i] = 0;
  for (std::size_t i = 0; i < other; ++i) right[1999 - i] = 0;
  const double top1 = 1 - static_cast<double>(wrong + other) / 2000;
  out["answers"] = answers_json(right);
  out["metrics"]["top1"] = top1;
  out["metrics"]["baseline_top1"] = 0.95;
  out["metrics"]["difference"] = top1 - 0.95;
  out["metrics"]["difference_ci95"] = {top1 - 0.951, top1 - 0.949};
  out["metrics"]["sqnr_db"] = sqnr;
  return out;
}

}  // namespace

TEST_CASE("pairs: the best of a width, and what is not told apart from it", "[fast]") {
  std::vector<Json> rows = {row(0, 1, 100, 0, 28), row(1, 2, 140, 0, 26), row(2, 12, 100, 2, 27)};
  std::vector<Record> records = read_records(rows);
  std::vector<std::string> said = best_of_widths(configurations(records));
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("Best at 6 bits: e2m3") && Contains("by 2.0 [1.") &&
                          Contains("points over e3m2") && Contains("int6") &&
                          Contains("is not told apart from it"));
  rows[1].erase("answers");  // as of an earlier program
  records = read_records(rows);
  CHECK_THAT(best_of_widths(configurations(records)).at(0),
             Contains("not paired") && Contains("e3m2"));
  for (Json& old : rows) old.erase("answers");
  records = read_records(rows);
  CHECK(best_of_widths(configurations(records)).empty());
}

TEST_CASE("pairs: best points are not chosen by noise", "[fast]") {
  // The narrow accumulator is ahead by one sample.
  std::vector<Json> rows = {row(0, 1, 101, 0, 28.4, "exact"), row(1, 1, 100, 0, 25, "narrow"),
                            row(2, 14, 99, 0, 40, "exact")};
  const std::vector<Record> records = read_records(rows);
  const std::vector<Configuration> all = configurations(records);
  const BestPoints best = best_points(all);
  REQUIRE(best.points.size() == 1);
  CHECK(best.points[0]->rows[0]->position == 0);
}
