#include <set>
#include <string>

#include "experiments/engine/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace numemu::exchange_cost_test {

using namespace numemu::experiments;

TEST_CASE("exchange-cost: bits on the wire are those of the model, and every rule is on paper",
          "[fast]") {
  const test::TemporaryFolder folder;
  const ExperimentRun run =
      testing::smoke_run("exchange-cost", folder, {"rows=16", "wire_workers=2,4", "nets=-"});
  const Conclusion conclusion = find_experiment("exchange-cost").run(run);
  for (const char* const claim : {"sent", "returned"}) {
    const auto [of, holds] = testing::held(conclusion, claim);
    CHECK(of == 9 * 2);      // all but hierarchical Birder and learned codes
    CHECK(holds >= of - 4);  // 4,096 elements are few for AdaComp's mean field
  }
  REQUIRE(conclusion.charts.size() == 2);
  std::set<std::string> rules;
  for (const ChartSeries& series : conclusion.charts[1].series) rules.insert(series.name);
  for (const char* const rule : {"float32", "topk", "birder, hierarchical", "sign"})
    CHECK(rules.contains(rule));
  REQUIRE(conclusion.tables.size() == 6);
  CHECK(conclusion.tables[3].rows.size() == 3 * 12);
}

}  // namespace numemu::exchange_cost_test
