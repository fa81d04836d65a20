// Outputs that are NaN or infinite are counted, placed and explained.
#include "experiments/report/not_finite_text.hpp"

#include "experiments/report/findings.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("a row says how many outputs are not finite, where they arise and why", "[fast]") {
  const Row row = read_row(sample::not_finite_row());
  CHECK(is_not_finite(row));
  CHECK(not_finite_sentences(row) ==
        std::vector<std::string>{
            "98,000 of 100,000 outputs are NaN (97,000) or infinite (1,000) (10,000 test samples)",
            "conv2: 1,200 of 40,000 results infinite: accumulator overflow (float16, at most "
            "6.55e+04)",
            "passed on by fc1"});
  CHECK(not_finite_results(row, "conv2") == 1200);
  CHECK(not_finite_results(row, "conv1") == 0);
}

TEST_CASE("rows that do not count tell by their loss", "[fast]") {
  Row row = read_row(sample::not_finite_row());
  row.not_finite = {};
  CHECK(is_not_finite(row));
  CHECK(not_finite_sentences(row).size() == 1);
  row.metrics.loss = 0.1;
  CHECK_FALSE(is_not_finite(row));
  CHECK(not_finite_sentences(row).empty());
  CHECK_FALSE(is_not_finite(Row()));
}

TEST_CASE("finite predictions of numbers that are not finite have failed, and come first",
          "[fast]") {
  const std::vector<Json> finite = sample::rows();
  std::vector<Json> rows = finite;
  rows.push_back(sample::not_finite_row());
  const std::vector<Record> before = records_of(finite), records = records_of(rows);
  const Verdicts old = judge_predictions(before), v = judge_predictions(records);
  CHECK(v.outputs.compared() == old.outputs.compared() + 1);
  CHECK(v.outputs.not_finite == 1);
  CHECK(v.outputs.largest == old.outputs.largest);
  CHECK(v.layers.not_finite == 4);
  REQUIRE(v.failed.size() >= 5);
  CHECK(v.failed[0].why.find("accumulator overflow (float16") != std::string::npos);
  CHECK(v.failed[4].why == "operands that were not finite before");
  CHECK(v.failed[5 - 1].format == records.back().name);
}
