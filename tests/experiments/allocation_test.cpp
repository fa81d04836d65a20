// The experiment allocation: its table, mixtures under budgets, recipes that eval takes, mistakes.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "experiments/allocation/front.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/places_network.hpp"
#include "tests/experiments/rows.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace allocation_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun allocation_run(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> overrides = {"net=" + (folder / "n.safetensors"), "data=clicks",
                                        "images=40", "points=1"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::smoke_run("allocation", folder, overrides);
}

/// Two layers of 10 and 100 weights, 1000 and 100 multiply-adds, at 8 and 4 bits.
SensitivityTable small_table() {
  SensitivityTable table;
  table.layers = {{"a", 10, 1000}, {"b", 100, 100}};
  table.choices = read_choices({"int8", "int4"});
  table.cells = {{{.001, 30, 80, 62.5}, {.1, 10, 40, 15.625}},
                 {{.002, 27, 800, 6.25}, {.05, 13, 400, 1.5625}}};
  return table;
}

}  // namespace

TEST_CASE("options: formats for one or both roles, scale rule, unit, files", "[fast]") {
  const auto choices =
      read_choices({"int4/int8~mse@exact", "mx(float4_e2m1fn,16)", "int8/float32"});
  REQUIRE(choices.size() == 3);
  const Json first = layer_entry("conv*", choices[0]);
  CHECK(first["match"] == "conv*");
  CHECK(first["roles"]["weight"]["format"] == "int4");
  CHECK(first["roles"]["activation"]["format"] == "int8");
  CHECK_THAT(first["roles"]["weight"]["scale"].text(), Catch::StartsWith("mse"));
  CHECK(first["gemms"]["fprop"]["unit"] == "exact");
  CHECK(first["roles"]["weight"]["granularity"] == "channel");
  CHECK(first["roles"]["activation"]["granularity"] == "tensor");
  CHECK(choices[1].patch["roles"]["weight"]["granularity"] == "block");
  CHECK(read_choices({"int4"}, "tensor")[0].patch["roles"]["weight"]["granularity"] == "tensor");
  CHECK(choices[1].patch["roles"]["activation"]["format"] == "mx(float4_e2m1fn,16)");
  CHECK(choices[2].patch["roles"]["activation"].is_null());
  const TemporaryFolder folder;
  std::ofstream(folder / "o.json") << R"([{"name": "w4c", "roles": {"weight": {"format": "int4",
      "granularity": "channel"}}}])";
  CHECK(read_choices({folder / "o.json"})[0].name == "w4c");
  CHECK_THAT(message_of([] { read_choices({"int4", "int4"}); }), Contains("found int4 twice"));
  CHECK_THAT(message_of([] { read_choices({"int44"}); }), Contains("int44"));
  CHECK_THAT(message_of([] { read_choices({"int4@"}); }), Contains("WEIGHTS[/ACTIVATIONS]"));
  std::ofstream(folder / "bad.json") << R"([{"name": "x", "role": {}}])";
  CHECK_THAT(message_of([&] { read_choices({folder / "bad.json"}); }), Contains("role"));
}

TEST_CASE("the cost of a multiply-add: bits times bits, or the first entry of a table", "[fast]") {
  const auto cost = [](const MacCosts& costs, const char* recipe) {
    return costs.of(policies::Recipe::parse_text(recipe, "r").layer("any"));
  };
  const char* w4a8 = R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int4"},
                         "activation": {"format": "int8"}}})";
  CHECK(cost({}, w4a8) == 4 * 8 / 1024.0);
  CHECK(cost({}, R"({"numemu_recipe": 1})") == 1);
  const TemporaryFolder folder;
  std::ofstream(folder / "c.json") << R"({"numemu_mac_costs": 1, "costs": [
      {"weight": "int4", "unit": "*exact", "cost": 9}, {"weight": "int*", "cost": 0.25}]})";
  const MacCosts costs = MacCosts::read(folder / "c.json");
  CHECK(cost(costs, w4a8) == 0.25);
  CHECK_THAT(message_of([&] { cost(costs, R"({"numemu_recipe": 1})"); }),
             Contains("c.json: no entry matches weight float32, activation float32"));
  for (const char* bad : {"{}", R"({"numemu_mac_costs": 1, "costs": []})",
                          R"({"numemu_mac_costs": 1, "costs": [{"cost": -1}]})",
                          R"({"numemu_mac_costs": 1, "costs": [{"weights": "*", "cost": 1}]})"}) {
    std::ofstream(folder / "b.json") << bad;
    CHECK_THAT(message_of([&] { MacCosts::read(folder / "b.json"); }), Contains("b.json: "));
  }
}

TEST_CASE("mixtures at budgets of bits, of MACs, of both, and for a noise", "[fast]") {
  const SensitivityTable table = small_table();
  FrontPlan plan;
  plan.random = 2;
  plan.budgets = {5};
  const auto options_of = [&](const FrontPlan& p, const std::string& name) {
    for (const FrontPoint& point : make_front(table, p).points) {
      if (point.name == name) return point.options;
    }
    return std::vector<std::size_t>();
  };
  using Options = std::vector<std::size_t>;
  // 5 bits per weight are 550 of 880: b has to go down, a may stay.
  CHECK(options_of(plan, "optimal at 5 bits") == Options{0, 1});
  // A limit on MACs beside it brings a down, too: 68.75 > 0.05 * 1100.
  plan.other_limit = 0.05;
  CHECK(options_of(plan, "optimal at 5 bits") == Options{1, 1});
  plan.other_limit.reset();
  plan.decibels = {12};  // 10^-1.2 = .0631: b alone may go
  CHECK(options_of(plan, "optimal for 12 dB") == Options{0, 1});
  plan.decibels = {60};
  CHECK(make_front(table, plan).sentences ==
        std::vector<std::string>{"No mixture has a predicted SQNR of 60 dB."});
  plan.decibels = {};
  plan.cost = CostKind::mac;
  plan.budgets = {0.03};  // 33 of 68.75 MACs' cost: a has to go down
  CHECK(options_of(plan, "optimal at 0.03 per MAC") == Options{1, 0});
  const Front front = make_front(table, plan);
  std::size_t random = 0, uniform = 0;
  for (const FrontPoint& point : front.points) {
    random += point.method == Method::random;
    uniform += point.method == Method::uniform;
    if (point.method != Method::uniform) CHECK(point.mac <= point.budget * (1 + 1e-9));
    double loss = 0, bits = 0;
    for (std::size_t l = 0; l < 2; ++l) {
      loss += table.cells[l][point.options[l]].loss;
      bits += table.cells[l][point.options[l]].weight_bits;
    }
    CHECK(point.loss == loss);
    CHECK(point.bits == bits / 110);
  }
  CHECK(uniform == 2);
  CHECK(random == 2 * 3);  // at the given budget and those of both uniform mixtures
  CHECK_THAT(message_of([&] {
               plan.solver = "simplex";
               make_front(table, plan);
             }),
             Contains("simplex"));
}

TEST_CASE("limits that no mixture keeps are named, each with the least there is", "[fast]") {
  const SensitivityTable table = small_table();
  FrontPlan plan;
  plan.budgets = {8};
  plan.other_limit = 0.01;  // 0.0156 at least
  using Sentences = std::vector<std::string>;
  CHECK(make_front(table, plan).sentences ==
        Sentences{"No mixture keeps other_limit, 0.01 per MAC: the least is 0.01562 per MAC."});
  plan.other_limit = 0.015624;
  CHECK(
      make_front(table, plan).sentences ==
      Sentences{"No mixture keeps other_limit, 0.015624 per MAC: the least is 0.015625 per MAC."});
  plan.other_limit.reset();
  plan.budgets = {3};
  CHECK(make_front(table, plan).sentences ==
        Sentences{"No mixture keeps 3 bits: the least is 4 bits."});
  // Each limit alone is kept, the MACs of layer a against the bits of layer b.
  SensitivityTable opposed = table;
  opposed.cells[0] = {{.001, 30, 80, 15.625}, {.1, 10, 40, 62.5}};
  opposed.cells[1] = {{.002, 27, 800, 1.5625}, {.05, 13, 400, 6.25}};
  plan.budgets = {4};
  plan.other_limit = 0.02;
  CHECK(make_front(opposed, plan).sentences ==
        Sentences{"No mixture keeps both 4 bits and other_limit, 0.02 per MAC."});
  plan.solver = "greedy";
  CHECK(make_front(opposed, plan).sentences ==
        Sentences{"Greedy found no mixture that keeps both 4 bits and other_limit, 0.02 per MAC."});
}

TEST_CASE("budgets that differ little have names and files of their own", "[fast]") {
  FrontPlan plan;
  plan.budgets = {4.00000001, 4.00000002, 4.00000002};
  plan.decibels = {12, 12.00001, 12};
  std::vector<std::string> files;
  for (const FrontPoint& point : make_front(small_table(), plan).points) {
    if (point.method == Method::optimal) files.push_back(point.file);
  }
  CHECK(files == std::vector<std::string>{"4-bits", "4.00000001-bits", "4.00000002-bits", "8-bits",
                                          "12-db", "12.00001-db"});
}

TEST_CASE("table, front and recipes of a network; the same again from what is there", "[slow]") {
  const TemporaryFolder folder;
  ExperimentRun run =
      allocation_run(folder, {"options=int8,int4/int8,float8_e4m3fn", "loss=noise"});
  const Experiment& experiment = find_experiment("allocation");
  const Conclusion conclusion = experiment.run(run);
  const Json table = parse_json(read_text(folder / "out/table.json"), "table.json");
  const net::Graph graph = net::build_net("dlrm-small", {21}, 2);
  const std::vector<std::string> layers = net::gemm_layer_names(graph);
  REQUIRE(table["layers"].size() == layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Json& layer = table["layers"][l];
    CHECK(layer["name"] == layers[l]);
    REQUIRE(layer["options"].size() == 3);
    // Fewer bits of the same scale rule: fewer stored bits.
    CHECK(layer["options"][1]["weight_bits"].get<double>() <=
          layer["options"][0]["weight_bits"].get<double>());
  }
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows.size() == layers.size());
  CHECK(conclusion.charts.size() == 3);
  // Biases are no weights of products: the network's figure counts them at 32 bits.
  const ResultTable& mixtures = conclusion.tables[1];
  CHECK(mixtures.header[1] == "bits/weight of products");
  CHECK(mixtures.header[2] == "W bits of network");
  CHECK(std::stod(mixtures.rows[0][2]) ==
        Approx(merged_rows(run.out)[0]["bits"]["weight"].get<double>()).margin(5e-4));
  CHECK(std::stod(mixtures.rows[0][2]) > std::stod(mixtures.rows[0][1]));
  std::set<std::string> names;  // rows say which mixture they are
  for (const Json& row : merged_rows(run.out)) names.insert(row["recipe_name"].text());
  CHECK(names.size() == merged_rows(run.out).size());
  CHECK(names.contains("int8 in all layers"));
  std::size_t recipes = 0;
  for (const auto& file : std::filesystem::directory_iterator(run.out)) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("recipe-")) continue;
    ++recipes;
    const policies::Recipe recipe =
        policies::Recipe::parse(parse_json(read_text(file.path()), name), name);
    recipe.require_matches(layers, name);
  }
  CHECK(recipes >= 3);
  const Conclusion again = experiment.run(run);
  CHECK(again.tables[1].rows == conclusion.tables[1].rows);
  CHECK(numemu::json_of(file_of(experiment, run, again))["findings"] ==
        numemu::json_of(file_of(experiment, run, conclusion))["findings"]);
}

TEST_CASE("other losses", "[slow]") {
  const TemporaryFolder folder;
  for (const char* loss : {"predicted", "cross_entropy"}) {
    ExperimentRun run =
        allocation_run(folder, {"options=int8,int4", "random=0", std::string("loss=") + loss});
    run.out = folder / loss;
    CHECK(!find_experiment("allocation").run(run).tables[0].rows.empty());
    // Trials of predictions are those of a version of them.
    const std::string trials = numemu::test::read_file(run.out + "/trials.jsonl");
    CHECK((trials.find("\"prediction\":") != std::string::npos) ==
          (loss == std::string("predicted")));
  }
}

TEST_CASE("settings that are wrong", "[fast]") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& setting) {
    return message_of(
        [&] { find_experiment("allocation").run(allocation_run(folder, {setting})); });
  };
  CHECK_THAT(message("loss=nois"), Contains("'noise'"));
  CHECK_THAT(message("cost=bit"), Contains("'bits'"));
  CHECK_THAT(message("budgets=x"), Contains("budgets"));
  CHECK_THAT(message("options=int44"), Contains("int44"));
}

TEST_CASE("mixtures are shown by the metric of the task, or refused by a loss it has not",
          "[fast]") {
  for (const auto& [targets, title] :
       {std::pair("classes", "mean IoU %"), {"values", "mean squared error"}}) {
    const TemporaryFolder folder;
    std::vector<std::string> settings = testing::write_places(folder, targets, true);
    settings.insert(settings.end(), {"options=int8,int4", "points=1", "images=20"});
    const auto found = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = settings;
      all.insert(all.end(), more.begin(), more.end());
      return find_experiment("allocation").run(testing::smoke_run("allocation", folder, all));
    };
    const Conclusion conclusion = found({});
    const ResultTable& front = conclusion.tables.at(1);
    CHECK(front.header.at(6) == title);
    CHECK(merged_rows(folder / "out")[0]["recipe_name"] == front.rows.at(0).at(0));
    for (const auto& row : front.rows) {
      CHECK(row.at(6) != "-");
      CHECK(row.at(7) != "-");
      CHECK(row.at(8).front() == '[');
    }
    CHECK_THAT(conclusion.sentences.at(0), Catch::StartsWith("Note: The network has 1 quantizer"));
    CHECK_THAT(conclusion.charts.back().y, Catch::StartsWith(std::string(title).substr(0, 6)));
    if (std::string(targets) == "values")
      CHECK(message_of([&] { found({"loss=cross_entropy"}); }) ==
            "--set: loss: cross_entropy needs classes as targets, and the data set npy has none; "
            "expected noise or predicted");
  }
}

}  // namespace allocation_test
