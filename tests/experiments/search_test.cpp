// Search of a small network: what is ranked, refined and measured, resumed, and refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "experiments/engine/experiment.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/rows.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace search_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun search_run(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> settings = {
      "net=" + (folder / "n.safetensors"), "data=clicks", "images=60",
      "formats=int4,int6,e2m1,e2m3",       "blocks=16",   "refine=6"};
  settings.insert(settings.end(), more.begin(), more.end());
  return testing::smoke_run("search", folder, settings);
}

Conclusion answer(const ExperimentRun& run) { return find_experiment("search").run(run); }

}  // namespace

TEST_CASE("search: ranked, refined, measured; the same rows when it is resumed", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = search_run(folder, {"bits=6.5"});
  const Conclusion found = answer(run);
  REQUIRE(found.tables.size() == 2);
  const ResultTable& measured = found.tables[0];
  CHECK(measured.rows.size() == 5);
  int random = 0;
  for (const std::vector<std::string>& row : measured.rows) {
    random += row[3] == "at random";
    CHECK(std::stod(row[4]) <= 6.505);
    CHECK(std::stod(row[5]) <= 6.505);
  }
  CHECK(random == 2);
  for (std::size_t i = 1; i < found.tables[1].rows.size(); ++i)
    CHECK(std::stod(found.tables[1].rows[i - 1][6]) >= std::stod(found.tables[1].rows[i][6]));
  CHECK(found.findings.size() == 5 + 2 + 1);
  REQUIRE(found.charts.size() == 2);
  CHECK_THAT(found.sentences[0], Catch::Contains("were ranked, 8 refined"));
  CHECK_THAT(found.answer,
             Catch::Contains("is predicted to be the best of") && Catch::Contains("dB measured"));
  CHECK_THAT(found.answer, Catch::Contains("the most SQNR") &&
                               Catch::Contains(" Scale rules searched: weights absmax, "));
  // Judged by another figure than the answer is: it says by which.
  CHECK_THAT(found.sentences.back(), Catch::Contains("est ") &&
                                         Catch::Contains(" of 5 measured (intervals at 95 %") &&
                                         !Catch::StartsWith("Best"));
  CHECK(std::ranges::any_of(measured.rows, [](const auto& row) { return row.back() == "yes"; }));
  CHECK_NOTHROW(policies::Recipe::parse(
      parse_json(read_text(run.out + "/recipe-best.json"), "recipe"), "recipe"));
  const std::vector<Json> rows = merged_rows(run.out);
  CHECK(rows.size() == 5);
  // Those that are drawn at random are predicted, too.
  for (const Json& row : rows) CHECK_FALSE(row["point"].contains("predictions"));
  const Conclusion again = answer(run);
  CHECK(merged_rows(run.out) == rows);
  CHECK(again.sentences == found.sentences);
  CHECK(again.tables[0].rows == found.tables[0].rows);
}

TEST_CASE("search: the cheapest within a loss is one that was measured", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion found =
      answer(search_run(folder, {"bits=6.5", "max_loss=60", "measured=1", "random=0"}));
  REQUIRE(found.tables.size() == 3);
  CHECK_THAT(found.answer,
             Catch::StartsWith("The cheapest configuration that surely loses at most 60 points"));
  REQUIRE(found.charts.size() == 3);
  CHECK(found.charts[0].title == "Loss against stored bits");
  const Conclusion none =
      answer(search_run(folder, {"bits=6.5", "max_loss=0", "measured=0", "random=0"}));
  CHECK_THAT(none.answer, Catch::StartsWith("No configuration surely loses at most 0 points") &&
                              Catch::Contains("The least loss was "));
  // Without a number of bits the space is wide enough for one that surely loses little.
  const TemporaryFolder other;
  const Conclusion wide = answer(search_run(other, {"max_loss=60", "measured=3", "random=0"}));
  CHECK_THAT(wide.answer, Catch::StartsWith("The cheapest configuration"));
  CHECK(std::ranges::any_of(wide.tables[1].rows,
                            [](const auto& row) { return std::stod(row[4]) > 4.51; }));
}

TEST_CASE("search: units are part of the space", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion found = answer(search_run(
      folder, {"bits=6.5", "units=neutral.mac.e8m7,neutral.mac.e8m2,neutral.mac.int8.wrap",
               "measured=4", "random=6"}));
  CHECK_THAT(found.sentences[0], Catch::Contains("and 3 units were ranked"));
  const ResultTable& ranked = found.tables[1];
  // The best are on the register that rounds least; eight bits that wrap have no figure.
  for (const std::vector<std::string>& row : ranked.rows) CHECK(row[2] == "neutral.mac.e8m7");
  std::set<std::string> measured;
  for (const std::vector<std::string>& row : found.tables[0].rows) {
    measured.insert(row[2]);
    if (row[2] == "neutral.mac.e8m2") CHECK(std::stod(row[9]) < 25);  // dB
  }
  CHECK(measured.size() > 1);
}

TEST_CASE("search: messages name settings as they were given", "[fast]") {
  const auto message = [](GivenBy by) {
    return test::message_of([&] {
      const Experiment& search = find_experiment("search");
      settings_of(search, Size::smoke, {"max_loss=many"}, by);
    });
  };
  CHECK_THAT(message(GivenBy::set), Catch::StartsWith("--set: max_loss: expected a number"));
  CHECK_THAT(message(GivenBy::option), Catch::StartsWith("--max-loss: expected a number"));
}

TEST_CASE("search: cheaper configurations are tuned", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion found =
      answer(search_run(folder, {"bits=6.5", "max_loss=60", "tune=calibrate,bias_correction",
                                 "measured=0", "random=0"}));
  CHECK_THAT(found.answer, Catch::StartsWith("The cheapest"));
  CHECK_THAT(found.sentences.back(), Catch::Contains("tune"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"tune=light"})),
                    Catch::Contains("expected --set: max_loss beside it"));
}

TEST_CASE("search: options of the same numbers count once", "[fast]") {
  // Lines of fewer than 64 numbers: longer blocks end with them.
  const std::vector<std::string> one = {"bits=6.5", "blocks=64", "refine=2", "measured=1",
                                        "random=0"};
  std::vector<std::string> more = one;
  more[1] = "blocks=64,128,256";
  const TemporaryFolder folder, other;
  const Conclusion found = answer(search_run(folder, one)), same = answer(search_run(other, more));
  CHECK(same.sentences[0] == found.sentences[0]);
  REQUIRE(same.tables.size() == 2);
  CHECK(same.tables[1].title == found.tables[1].title);
  CHECK(same.tables[1].rows == found.tables[1].rows);
}

TEST_CASE("search: laws have a table each and no rows", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion found = answer(search_run(folder, {"dist=normal,laplace", "bits=4.5"}));
  REQUIRE(found.tables.size() == 2);
  CHECK_THAT(found.tables[1].title, Catch::StartsWith("laplace: the best of"));
  CHECK_THAT(found.answer, Catch::StartsWith("normal: ") && Catch::Contains("; laplace: ") &&
                               Catch::EndsWith(". Scale rules searched: absmax, floor, even, mse "
                                               "without blocks."));
  CHECK_FALSE(std::filesystem::exists(folder / "rows.jsonl"));
}

TEST_CASE("search: without rules the best scales belong to the space", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion found =
      answer(search_run(folder, {"dist=normal", "formats=nf4", "bits=4.5", "rules="}));
  // 21.76 dB by absmax.
  CHECK(found.tables[0].rows[0][0] == "nf4, float8_e4m3fn per 16 and float32 per tensor, mse");
  CHECK(std::stod(found.tables[0].rows[0][2]) == Approx(22.82).margin(0.1));
  CHECK_THAT(found.answer, Catch::Contains("four-over-six, mse (in blocks"));
}

TEST_CASE("search refuses spaces without options and with too many", "[fast]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(answer(search_run(folder, {"formats=int8", "bits=4"})),
                    Catch::Contains("the space is empty"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"bits=4", "mac_cost=0.001"})),
                    Catch::Contains("--set: mac_cost: every configuration costs at least"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"rules=flor"})), Catch::Contains("'floor'"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"rules=bogus"})),
                    Catch::Contains("absmax") && Catch::Contains("four-over-six") &&
                        Catch::Contains("floor") && Catch::Contains("none"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"scales=int4"})), Catch::Contains("not int4"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"units=neutral.xnor"})),
                    Catch::Contains("takes none of the"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"rules=floor", "blocks="})),
                    Catch::Contains("the space is empty"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"formats=int99"})), Catch::Contains("int99"));
  CHECK_THROWS_WITH(answer(search_run(folder, {"dist=nothing"})), Catch::Contains("nothing"));
  ExperimentRun run = search_run(folder, {"max_loss=1"});
  run.shard = {0, 2};
  CHECK_THROWS_WITH(answer(run), Catch::Contains("--shard"));
}

}  // namespace search_test
