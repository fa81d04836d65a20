// Mask diversity: the counts, the laws that masks follow, the masks of training, and what ranks.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "experiments/engine/experiment.hpp"
#include "experiments/mask_diversity/pieces.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace mask_diversity_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun mask_diversity_run(const TemporaryFolder& folder,
                                 const std::vector<std::string>& more = {}) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> overrides = {"nets=" + (folder / "n.safetensors"),
                                        "data=clicks",
                                        "blocks=2000",
                                        "tiles=100",
                                        "images=60",
                                        "resamples=99",
                                        "train_net=dlrm-small",
                                        "train_samples=512",
                                        "epochs=2",
                                        "refresh=1"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::smoke_run("mask-diversity", folder, overrides);
}

Conclusion answer(const ExperimentRun& run) { return find_experiment("mask-diversity").run(run); }

const ResultTable& table_named(const Conclusion& conclusion, std::string_view start) {
  const auto found = std::find_if(conclusion.tables.begin(), conclusion.tables.end(),
                                  [&](const ResultTable& t) { return t.title.starts_with(start); });
  REQUIRE(found != conclusion.tables.end());
  return *found;
}

const std::vector<std::string>& row_named(const ResultTable& table, const std::string& name) {
  const auto found = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const std::vector<std::string>& r) { return r[0] == name; });
  REQUIRE(found != table.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("patterns of density 50 %, the most diverse first", "[fast]") {
  const std::vector<DiversityPattern>& patterns = half_density_patterns();
  REQUIRE(patterns.size() >= 8);
  CHECK(patterns[0].name == "unstructured");
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    INFO(patterns[i].name);
    CHECK(2 * patterns[i].pattern.kept == patterns[i].pattern.group);
    if (i > 0) CHECK(patterns[i].log10_exact() <= patterns[i - 1].log10_exact());
    CHECK(patterns[i].log10_bound() >= patterns[i].log10_exact());
    CHECK(&diversity_pattern(patterns[i].name) == &patterns[i]);
  }
  CHECK(diversity_pattern("4:8-T").log10_bound() > diversity_pattern("2:4").log10_exact());
  CHECK(diversity_pattern("4:8-T").log10_exact() < diversity_pattern("2:4").log10_exact());
  CHECK_THAT(message_of([] { diversity_pattern("3:5"); }), Catch::Contains("3:5"));
}

TEST_CASE("pieces of a weight are groups of channels and tiles of one tap", "[fast]") {
  // [out 4, taps 3, in 16], each element its number.
  net::Tensor weight({4, 3, 16});
  for (std::size_t i = 0; i < weight.data.size(); ++i) weight.data[i] = static_cast<float>(i);
  CHECK(pieces_of(weight, diversity_pattern("4:8")) == weight.data);
  const std::vector<float> tiles = pieces_of(weight, diversity_pattern("2:4-T"));
  REQUIRE(tiles.size() == weight.data.size());
  // Tap 1, second tile of the channels: tiles come tap by tap, 4 of them in each.
  const std::size_t tile = (4 + 1) * 16;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c)
      CHECK(tiles[tile + r * 4 + c] == static_cast<float>((r * 3 + 1) * 16 + 4 + c));
  }
  CHECK(pieces_of(weight, diversity_pattern("4:8-T")).empty());
  for (const DiversityPattern& pattern : half_density_patterns()) {
    if (!pattern.structured()) continue;
    const std::vector<std::uint8_t> keep = masks_of(pieces_of(weight, pattern), pattern);
    CHECK(2 * std::count(keep.begin(), keep.end(), 1) == static_cast<std::ptrdiff_t>(keep.size()));
  }
}

TEST_CASE("masks of normal weights: groups alike, tiles nearly", "[fast]") {
  const auto census = [](const char* name, std::int64_t pieces) {
    const DiversityPattern& pattern = diversity_pattern(name);
    return figures_of(normal_census(pattern, pieces, 3), pattern, true);
  };
  constexpr double kSure = 6e-5;  // two-sided tail beyond 4 standard errors
  for (const char* name : {"1:2", "2:4", "4:8"}) {
    INFO(name);
    const CensusFigures seen = census(name, 20000);
    CHECK(seen.kept == 0.5);
    CHECK(std::to_string(seen.distinct) == diversity_pattern(name).masks().decimal);
    CHECK(seen.p > kSure);
    const double log2 = diversity_pattern(name).masks().log2;
    CHECK(seen.low - 0.001 < log2);
    CHECK(seen.high + 0.001 > log2);
  }
  const CensusFigures tiles = census("2:4-T", 20000);
  CHECK(tiles.distinct == 90);
  REQUIRE(tiles.kinds);
  CHECK(tiles.kinds->distinct == 2);
  CHECK(tiles.kinds->within_p > kSure);
  CHECK(tiles.kinds->entropy == Approx(tiles.corrected).margin(0.005));
  // The large tile is known by its kinds, of which most occur.
  const CensusFigures large = census("4:8-T", 3000);
  CHECK(std::isnan(large.p));
  CHECK(large.distinct > 2990);
  REQUIRE(large.kinds);
  CHECK(large.kinds->distinct > 50);
  CHECK(large.kinds->entropy == Approx(diversity_pattern("4:8-T").masks().log2).epsilon(0.01));
  // Neighbouring zeros are not equally likely: the middle window shares its elements with both.
  CHECK(census("4:8 seq", 20000).p < 1e-9);
}

TEST_CASE("mask-diversity on a small network", "[slow]") {
  const TemporaryFolder folder;
  const ExperimentRun run = mask_diversity_run(folder, {"blocks=20000"});
  const Conclusion conclusion = answer(run);
  const std::size_t patterns = half_density_patterns().size();

  const ResultTable& counts = table_named(conclusion, "Masks of 8 x 8");
  REQUIRE(counts.rows.size() == patterns);
  CHECK(row_named(counts, "unstructured")[1] == "1832624140942590534");
  CHECK(row_named(counts, "4:8-T")[1] == "116963796250");
  CHECK(row_named(counts, "4:8-T")[3] == "13.24446");

  CHECK(table_named(conclusion, "Masks of independent normal weights").rows.size() == patterns - 1);
  CHECK_FALSE(table_named(conclusion, "Masks of the trained weights").rows.empty());

  const ResultTable& training = table_named(conclusion, "Masks of dlrm-small in training");
  REQUIRE(training.rows.size() == 4);
  for (const std::vector<std::string>& row : training.rows) {
    const double renewals = std::stod(row[1]), distinct = std::stod(row[5]);
    CHECK(renewals >= 3);
    CHECK(std::stod(row[2]) > 0);
    CHECK(std::stod(row[2]) < 50);
    CHECK(distinct > 1);
    CHECK(distinct <= renewals + 1);
  }

  const ResultTable& pruned = table_named(conclusion, "One-shot magnitude pruning");
  REQUIRE(pruned.rows.size() == patterns);
  for (const std::vector<std::string>& row : pruned.rows) {
    CHECK(row[3] == "0.5000");
    CHECK(std::stod(row[4]) > 0.5);
    CHECK(std::stod(row[4]) <= std::stod(pruned.rows[0][4]));  // unstructured keeps most
  }
  const ResultTable& correlations = table_named(conclusion, "Rank correlation");
  CHECK(correlations.rows.size() == 3);
  for (const std::vector<std::string>& row : correlations.rows) {
    double low = 0, high = 0;
    REQUIRE(std::sscanf(row[4].c_str(), "[%lf, %lf]", &low, &high) == 2);
    CHECK(low < high);  // eleven patterns leave an interval, even in perfect order
  }

  REQUIRE(conclusion.charts.size() == 3);
  for (const Chart& chart : conclusion.charts) CHECK_FALSE(chart.series.empty());
  REQUIRE_FALSE(conclusion.findings.empty());
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(finding.low <= finding.measured);
    CHECK(finding.measured <= finding.high);
  }
  // 20,000 normal pieces tell their entropy well enough, the few groups of the network do not.
  for (const char* claim : {"accuracy", "accuracy, exact count", "accuracy, magnitude"}) {
    INFO(claim);
    CHECK(std::ranges::count(conclusion.findings, claim, &Finding::claim) == 1);
  }
  int held = 0, open = 0;
  for (const Finding& finding : conclusion.findings) {
    if (!finding.what.starts_with("entropy")) continue;
    INFO(finding.what);
    const double slack = 0.001 * finding.predicted;
    const bool near =
        finding.low >= finding.predicted - slack && finding.high <= finding.predicted + slack;
    if (finding.verdict != Verdict::fails) CHECK((finding.verdict == Verdict::holds) == near);
    held += finding.verdict == Verdict::holds;
    open += finding.verdict == Verdict::undecided;
  }
  CHECK(held > 0);
  CHECK(open > 0);
  // Existing results are not recomputed, and are equal.
  const Conclusion again = answer(run);
  const Experiment& experiment = find_experiment("mask-diversity");
  CHECK(numemu::json_of(file_of(experiment, run, again)) ==
        numemu::json_of(file_of(experiment, run, conclusion)));
}

TEST_CASE("networks trained afresh join the shipped one", "[slow]") {
  const TemporaryFolder folder;
  const ExperimentRun run = mask_diversity_run(folder, {"trained=2"});
  const net::Dataset data = net::load_dataset("clicks", folder.path());
  const std::vector<PrunedNet> nets = pruned_nets(run, data);
  REQUIRE(nets.size() == 3);
  CHECK(nets[1].label == "dlrm-small of seed 0");
  for (const PrunedNet& net : nets) {
    CHECK(net.patterns.size() == half_density_patterns().size());
    CHECK(net.dense.kept == 1);
    CHECK(net.dense.retained == 1);
    CHECK(net.dense.right.size() == 60);
  }
  CHECK(nets[1].patterns[0].loss != nets[2].patterns[0].loss);
}

TEST_CASE("settings that mask-diversity cannot serve are refused", "[fast]") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& setting) {
    return message_of([&] { answer(mask_diversity_run(folder, {setting})); });
  };
  CHECK_THAT(message("blocks=10"), Catch::StartsWith("--set: blocks: expected a whole number"));
  CHECK_THAT(message("nets=lenat"), Catch::Contains("lenet"));
  CHECK_THAT(message("refresh=1000"),
             Catch::StartsWith("--set: refresh: expected fewer than the 8 steps"));
}

}  // namespace mask_diversity_test
