// Two different points never have the same name, and never print the same line.
#include "experiments/report/names.hpp"

#include <set>

#include "experiments/report/configurations.hpp"
#include "experiments/report/headline.hpp"
#include "experiments/report/report_row.hpp"
#include "policies/canonical_json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/json_path.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace names_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

Json block_row(const char* format, const Json& layers = Json::array()) {
  Json row = sample::row(1, &sample::kFormats[14], &sample::kFormats[14], "neutral.exact");
  Json& recipe = row["point"]["recipe"];
  for (const char* role : {"weight", "activation"}) recipe["roles"][role]["format"] = format;
  recipe["layers"] = layers;
  return row;
}

Json rule(const char* match, const char* format) {
  const Json patch = {{"format", format}};
  return {{"match", match}, {"roles", {{"weight", patch}, {"activation", patch}}}};
}

/// Every key of a point that an engine may vary, two values each.
std::vector<std::pair<std::string, std::vector<Json>>> choices() {
  const Json layers = Json::array({rule("fc*", "mxfp4")}),
             scaled =
                 Json::array({{{"match", "fc*"}, {"roles", {{"weight", {{"scale", "mse(17)"}}}}}}});
  const Json unit = {{"numemu_unit", 1}, {"name", "my.mac"}, {"core", "chain"}};
  Json other = unit;
  other["core"] = "tree";
  return {{"/net", {"lenet", "mlp"}},
          {"/data", {"glyphs", "mnist"}},
          {"/eval_images", {100, 200}},
          {"/fold_batch_norm", {true, false}},
          {"/weights", {"0123", "4567"}},
          {"/recipe/seed", {0, 1}},
          {"/recipe/roles/weight/format", {"int8", "int4"}},
          {"/recipe/roles/weight/rounding", {"rne", "rtz"}},
          {"/recipe/roles/weight/scale", {"absmax", "mse(exact)", "mse"}},
          {"/recipe/roles/weight/axis", {"channel", "reduction"}},
          {"/recipe/roles/activation/ste", {"identity", "clipped"}},
          {"/recipe/roles/activation/mask", {nullptr, "greedy(2:4)"}},
          {"/recipe/roles/vector",
           {nullptr, {{"format", "float16"}}, {{"format", "float16"}, {"rounding", "rtz"}}}},
          {"/recipe/gemms/fprop/unit", {"neutral.exact", "neutral.f32.sequential", unit, other}},
          {"/recipe/gemms/dgrad/unit", {"neutral.exact", "neutral.f32.sequential"}},
          {"/recipe/update/loss_scale", {"dynamic", "static(4)"}},
          {"/recipe/calibrate/rule", {"absmax", "percentile(99.9)"}},
          {"/recipe/layers", {Json::array(), layers, scaled}}};
}

/// The next of a fixed sequence of numbers below n.
std::size_t draw(std::uint64_t& state, std::size_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % n;
}

/// Different points in which a few keys vary, so that most have a near twin.
std::vector<Json> random_sweep(std::size_t sweep, std::uint64_t& state) {
  static const auto all = choices();
  std::vector<Json> rows;
  std::set<std::string> points;
  for (int i = 0; i < 24; ++i) {
    Json row = block_row("int8");
    for (int change = 0; change < 4; ++change) {
      const auto& [path, values] = all[(draw(state, 4) * 5 + sweep) % all.size()];
      at_path(row["point"], path) = values[draw(state, values.size())];
    }
    // The order of keys makes no other point.
    if (points.insert(numemu::policies::canonical_json(row["point"])).second) rows.push_back(row);
  }
  return rows;
}

/// What a table of points shows of a row.
std::string line(const ReportRow& r) {
  std::string out;
  for (const ReportRole* role : {&r.weight, &r.activation}) {
    for (const std::string* part : {&role->format, &role->rounding, &role->overflow, &role->scale,
                                    &role->granularity, &role->mask})
      out += *part + '|';
  }
  return out + r.other + '|' + r.settings + '|' + r.unit;
}

}  // namespace

TEST_CASE("any two different points have different names and lines", "[fast]") {
  std::uint64_t state = 1;
  for (std::size_t sweep = 0; sweep < 60; ++sweep) {
    const std::vector<Json> rows = random_sweep(sweep, state);
    std::set<std::string> names, lines;
    for (const ReportRow& r : report_rows_of(rows)) {
      INFO(r.name << "\n" << line(r));
      CHECK(names.insert(r.name).second);
      CHECK(lines.insert(line(r)).second);
    }
  }
}

TEST_CASE("whether predictions are made is no setting of a row", "[fast]") {
  std::vector<Json> rows = {block_row("mxfp4"), block_row("mxfp8_e4m3")};
  rows[1]["point"]["predictions"] = false;
  for (const ReportRow& r : report_rows_of(rows)) {
    INFO(r.name << ": " << r.settings);
    CHECK(r.settings.find("predictions") == r.settings.npos);
    CHECK(r.name.find("predictions") == r.name.npos);
  }
}

TEST_CASE("a mixed recipe is named by what differs from the base", "[fast]") {
  std::vector<Json> rows = {
      block_row("mxfp4"), block_row("mxfp4", Json::array({rule("*", "mxfp8_e4m3")})),
      block_row("mxfp4", Json::array({rule("fc*", "mxfp8_e4m3")})),
      block_row("mxfp4", Json::array({rule("conv1", "int8")})),
      block_row("mxfp4", Json::array({rule("fc*", "int8"), rule("fc3", "mxfp4")}))};
  rows[3]["point"]["recipe"]["layers"].push_back(
      {{"match", "fc3"}, {"gemms", {{"fprop", {{"unit", "neutral.f32.sequential"}}}}}});
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(records[0].name == "mxfp4");
  CHECK(records[1].name == "mxfp4 + all layers mxfp8_e4m3");
  CHECK(records[2].name == "mxfp4 + 3 layers mxfp8_e4m3");
  CHECK(records[3].name == "mxfp4 + conv1 int8 + fc3 on f32.sequential");
  CHECK(records[4].name == "mxfp4 + 2 layers int8");
  CHECK(records[2].other == "fc*: weight mxfp8_e4m3, activation mxfp8_e4m3");
}

TEST_CASE("names tell what differs, and only that", "[fast]") {
  std::vector<Json> rows = {block_row("mxfp4"), block_row("mxfp4"), block_row("int8"),
                            block_row("int8")};
  rows[1]["point"]["recipe"]["calibrate"]["rule"] = "percentile(99.9)";
  rows[3]["point"]["recipe"]["gemms"]["fprop"]["unit"] = "neutral.f32.sequential";
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(records[0].name == "mxfp4");
  CHECK(records[1].name == "mxfp4, calibrate.rule percentile(99.9)");
  CHECK(records[2].name == "int8 on exact");
  CHECK(records[3].name == "int8 on f32.sequential");
  CHECK(records[3].label == "int8");
  // Where a key varies, every row says its value.
  CHECK(records[2].settings == "calibrate.rule absmax");
}

TEST_CASE("names say only what is not usual in the sweep", "[fast]") {
  std::vector<Json> rows(6, block_row("int4"));
  rows[0]["point"]["recipe"]["roles"]["weight"]["rounding"] = "sr(8)";
  rows[3]["point"]["recipe"]["seed"] = 1;
  rows[4]["point"]["recipe"]["calibrate"]["rule"] = "mse";
  rows[5]["point"]["recipe"]["roles"]["weight"]["granularity"] = "block";
  rows.erase(rows.begin() + 1);
  std::vector<std::string> names;
  for (const ReportRow& r : report_rows_of(rows)) names.push_back(r.name);
  CHECK(names == std::vector<std::string>{"int4, weight.rounding sr(8)", "int4",
                                          "int4, recipe.seed 1", "int4, calibrate.rule mse",
                                          "int4, weight.granularity block"});
  // What is usual in all of the sweep is so too where two rows share a format.
  rows.push_back(block_row("int8"));
  rows.push_back(block_row("int8"));
  rows[5]["point"]["recipe"]["calibrate"]["rule"] = "mse";
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(records[5].name == "int8, calibrate.rule mse");
  CHECK(records[6].name == "int8");
}

TEST_CASE("the headline never names two configurations alike", "[fast]") {
  std::uint64_t state = 7;
  for (std::size_t sweep = 0; sweep < 18; ++sweep) {
    std::vector<Json> rows = random_sweep(sweep, state);
    for (Json& row : rows) {
      row.erase("predicted");
      row["bits"] = {{"weight", 4}, {"activation", 4}};
    }
    std::vector<ReportRow> records = report_rows_of(rows);
    const auto lose = [](ReportRow& r, double loss) {
      r.judged.difference = r.judged.difference_low = r.judged.difference_high = -loss;
      r.judged.value = 0.9;
    };
    for (ReportRow& r : records) lose(r, 0.2);
    std::set<std::string> sentences;
    for (const std::vector<std::size_t>& places : same_but_seed(records)) {
      for (const std::size_t i : places) lose(records[i], 0);
      // With several seeds the sentence ends with their number.
      std::string sentence = headline(records).front();
      sentence.resize(sentence.find(", at 90.00 %"));
      INFO(sentence);
      CHECK(sentences.insert(sentence).second);
      for (const std::size_t i : places) lose(records[i], 0.2);
    }
  }
}

TEST_CASE("rows of one point are told apart by version, then by place", "[fast]") {
  std::vector<Json> rows = {block_row("int8"), block_row("int8"), block_row("int8")};
  rows[2]["version"] = "2";
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(records[0].name == "int8, version 1 (row 1)");
  CHECK(records[1].name == "int8, version 1 (row 2)");
  CHECK(records[2].name == "int8, version 2");
}

TEST_CASE("a recorded mse is what the rule was then", "[fast]") {
  std::vector<Json> rows = {block_row("int8"), block_row("int8")};
  rows[0]["point"]["recipe"]["roles"]["weight"]["scale"] = "mse";
  rows[1]["point"]["recipe"]["roles"]["weight"]["scale"] = "mse(exact)";
  rows[0]["point"]["recipe"]["calibrate"]["rule"] = "mse";
  rows[0]["point"]["recipe"]["layers"] =
      Json::array({{{"match", "fc1"}, {"roles", {{"weight", {{"scale", "mse"}}}}}}});
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(records[0].weight.scale == "mse(17)");
  CHECK(records[1].weight.scale == "mse(exact)");
  CHECK(records[0].other == "fc1: weight scale mse(17)");
  CHECK(records[0].settings == "calibrate.rule mse");
}

}  // namespace names_test
