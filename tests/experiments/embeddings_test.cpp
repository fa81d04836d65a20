// 4-bit tables: the laws of normal rows, and the experiment from settings to conclusion.
#include "experiments/embeddings/embeddings.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace embeddings_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun embeddings_run(const TemporaryFolder& folder,
                             const std::vector<std::string>& settings) {
  return testing::smoke_run("embeddings", folder, settings);
}

}  // namespace

TEST_CASE("embeddings: squares of ranges and extremes of normal rows", "[fast]") {
  using namespace embeddings;
  CHECK(squared_range(2) == Approx(2).epsilon(1e-7));  // (x - y)^2 of two
  // Mean and deviation of the range as control charts tabulate them, d2 and d3, to four digits.
  CHECK(squared_range(5) == Approx(2.326 * 2.326 + 0.8641 * 0.8641).epsilon(4e-4));
  CHECK(squared_range(8) == Approx(2.847 * 2.847 + 0.8198 * 0.8198).epsilon(4e-4));
  CHECK(squared_range(25) == Approx(3.931 * 3.931 + 0.7084 * 0.7084).epsilon(4e-4));
  CHECK(squared_largest(1) == Approx(1).epsilon(1e-7));
  CHECK(squared_largest(2) == Approx(1 + 2 / 3.14159265358979).epsilon(1e-7));
  // All but the two ends, uniform on steps of a fifteenth.
  CHECK(uniform_loss(225 * 12, 8, 2) == Approx(std::sqrt(0.75)));
}

TEST_CASE("embeddings: losses of normal rows are those of the reference", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = embeddings_run(folder, {"dimensions=8,64", "tables=10"});
  Conclusion conclusion;
  embeddings::add_rows(run, conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  REQUIRE(conclusion.tables[0].rows.size() == 2);
  for (const auto& row : conclusion.tables[0].rows)
    CHECK(row.size() == conclusion.tables[0].header.size());
  int references = 0, ranges = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    CHECK_FALSE(finding.claim.empty());
    CHECK(finding.verdict != Verdict::fails);
    references += finding.claim == "table";
    ranges += finding.claim == "ranges";
  }
  CHECK(references == 2 * 6);
  CHECK(ranges == 2);
  CHECK_THAT(message_of([&] {
               Conclusion none;
               embeddings::add_rows(embeddings_run(folder, {"dimensions=8,x"}), none);
             }),
             Catch::Contains("dimensions: expected whole numbers"));
}

TEST_CASE("embeddings: networks of a given width are evaluated with every table", "[slow]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      embeddings_run(folder, {"widths=4,8", "seeds=2", "train_samples=1024", "eval_samples=500"});
  Conclusion conclusion;
  embeddings::add_clicks(run, conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == 2 * 7);
  CHECK(conclusion.findings.size() == 2 * 7);
  for (const Finding& finding : conclusion.findings) CHECK(std::isfinite(finding.measured));
  CHECK_THAT(message_of([&] {
               Conclusion none;
               embeddings::add_clicks(embeddings_run(folder, {"widths=0"}), none);
             }),
             Catch::Contains("expected dlrm(WIDTH)"));
}

}  // namespace embeddings_test
