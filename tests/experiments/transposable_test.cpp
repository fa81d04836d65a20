// The loss from transposable masks: the experiment on small numbers, its verdicts and its refusals.
#include <algorithm>
#include <cmath>

#include "experiments/engine/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::read_file;
using numemu::test::TemporaryFolder;

namespace numemu::experiments {
extern const Experiment experiment_transposable;
}

namespace {

ExperimentRun transposable_run(const TemporaryFolder& folder,
                               const std::vector<std::string>& more) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> overrides = {"nets=" + (folder / "n.safetensors"),
                                        "data=clicks",
                                        "blocks=3000",
                                        "placed=20000",
                                        "images=64",
                                        "patterns=unstructured,2:4,2:4-T"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return {.settings = Settings(experiment_transposable.settings, Size::smoke, overrides),
          .seed = 1,
          .out = folder / "out",
          .folders = {folder.path(), folder.path()},
          .hooks = {}};
}

/// Half of a 95 % interval is 1.96 standard errors.
double standard_error(const Finding& finding) { return (finding.high - finding.low) / 2 / 1.96; }

}  // namespace

TEST_CASE("transposable: losses, bounds, conversion and networks", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = transposable_run(folder, {});
  const Conclusion conclusion = experiment_transposable.run(run);

  std::size_t losses = 0, steps = 0, bounds = 0, placed = 0, repairs = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(finding.low <= finding.measured);
    CHECK(finding.measured <= finding.high);
    if (finding.what.starts_with("share of normal magnitudes")) {
      ++losses;
      CHECK(std::fabs(finding.measured - finding.predicted) < 4 * standard_error(finding));
    } else if (finding.what.find("claimed above 0") != std::string::npos) {
      ++steps;
      CHECK((finding.verdict == Verdict::holds) == (finding.measured > 0 && finding.low > 0));
    } else if (finding.what.find("break the bound") != std::string::npos) {
      ++bounds;
      CHECK(finding.measured == 0);
      CHECK(finding.verdict == Verdict::holds);
    } else if (finding.what.find("random placement") != std::string::npos) {
      ++placed;
      CHECK(std::fabs(finding.measured - finding.predicted) < 4 * standard_error(finding));
    } else if (finding.what.starts_with("AdaPrune")) {
      ++repairs;
      CHECK((finding.verdict == Verdict::holds) == (finding.measured >= 2));
    }
  }
  CHECK(losses == 7);
  CHECK(steps == 6);
  CHECK(bounds == 6);
  // The paper prunes the lightest first.
  CHECK(std::ranges::count(conclusion.findings, "greedy", &Finding::claim) == 2);
  CHECK(std::ranges::count(conclusion.findings, "greedy, heaviest first", &Finding::claim) == 4);
  CHECK(placed == 20);
  CHECK(repairs == 2);
  for (const ResultTable& table : conclusion.tables)
    for (const std::vector<std::string>& row : table.rows) CHECK(row.size() == table.header.size());
  CHECK(conclusion.charts.size() == 4);  // losses, one network, two patterns
  CHECK(conclusion.sentences.size() == 4);

  // Everything is remembered: again, the same bytes.
  const std::string rows = read_file(folder / "out/trials.jsonl");
  const Conclusion again = experiment_transposable.run(run);
  CHECK(read_file(folder / "out/trials.jsonl") == rows);
  CHECK(numemu::json_of(file_of(experiment_transposable, run, again)) ==
        numemu::json_of(file_of(experiment_transposable, run, conclusion)));
}

TEST_CASE("transposable: settings that make no experiment are refused", "[fast]") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& setting) {
    return message_of([&] { experiment_transposable.run(transposable_run(folder, {setting})); });
  };
  CHECK_THAT(message("blocks=1"), Catch::StartsWith("--set: blocks: "));
  CHECK_THAT(message("patterns=2:4,5:9-T"), Catch::Contains("5:9-T"));
  CHECK_THAT(message("nets=lenat"), Catch::Contains("lenet"));
}
