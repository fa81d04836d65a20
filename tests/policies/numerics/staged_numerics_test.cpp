// Training in stages against training by hand with the recipe of each stage; runs that are killed
// around the change; plateaus; what a stage takes over.
#include "policies/numerics/staged_numerics.hpp"

#include <cmath>
#include <functional>
#include <set>

#include "emu/net/train/schedule.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/step.hpp"
#include "emu/net/train/train.hpp"
#include "policies/calibrate/reference.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace staged_numerics_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;
using numemu::test::read_file;
using numemu::test::TemporaryFolder;

namespace {

constexpr std::int64_t kEpochs = 4;

/// Everything that both stages keep state for stays the same but the formats.
const std::string kBase = R"j({"numemu_recipe": 1, "seed": 4,
  "roles": {"weight": {"format": "int8", "mask": "greedy(2:4,remainder=dense,refresh=0)"},
            "activation": {"format": "float8_e4m3fn", "scale": "delayed(3)"},
            "gradient": {"format": "float8_e5m2", "rounding": "sr(8)", "scale": "delayed(3)"}},
  "update": {"optimizer": "sgd", "master": "bfloat16", "rule": "residual",
             "loss_scale": "dynamic(1024,7)"})j";
const std::string kPatch = R"j({"penalty": "kure(0.01)",
  "roles": {"weight": {"format": "int4"}, "gradient": {"rounding": "rne"}}})j";

Recipe staged(const std::string& from) {
  return Recipe::parse_text(
      kBase + R"j(, "stages": [{"from": )j" + from + R"j(, "patch": )j" + kPatch + "}]}", "r.json");
}

const net::Dataset& data() {
  static const net::Dataset set = net::test::synthetic_dataset();
  return set;
}

net::TrainOptions options_of() {
  net::TrainOptions options = net::test::stateful_options("sgd");
  options.epochs = kEpochs;
  options.patience = 0;
  options.augment = {};
  return options;
}

std::vector<float> weights_of(net::Graph& graph) {
  std::vector<float> all;
  for (const net::Parameter* parameter : graph.parameters())
    all.insert(all.end(), parameter->value.data.begin(), parameter->value.data.end());
  return all;
}

/// Epochs before `change` with one recipe, the others with another, whose numerics start from the
/// state of the first.
std::vector<float> by_hand(const Recipe& first, const Recipe& second, std::int64_t change) {
  const net::TrainOptions options = options_of();
  net::Graph graph = net::test::stateful_net(data());
  RecipeNumerics before(first, graph), after(second, graph);
  const std::vector<net::Parameter*> parameters = graph.parameters();
  const auto optimizer = net::make_optimizer(
      options, std::vector<const net::Parameter*>(parameters.begin(), parameters.end()));
  const std::int64_t per_epoch = (data().train_count() + options.batch - 1) / options.batch;
  std::int64_t step = 0;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == change) {
      net::NamedState state;
      before.save_state(state);
      after.load_state(state);
    }
    const std::vector<std::int64_t> order =
        net::shuffled(data().train_count(), options.seed, epoch);
    for (std::int64_t i = 0; i < per_epoch; ++i, ++step) {
      const auto begin = order.begin() + i * options.batch;
      net::StepInput input;
      input.index = step;
      input.samples.assign(begin,
                           begin + std::min<std::ptrdiff_t>(options.batch, order.end() - begin));
      input.learning_rate =
          options.learning_rate * net::rate_factor(net::find_schedule(options.schedule),
                                                   {step, per_epoch * kEpochs, epoch, kEpochs},
                                                   options.warmup);
      input.x = data().train_batch(input.samples, input.targets);
      net::training_step(graph, input, options, *optimizer, epoch < change ? before : after);
    }
  }
  return weights_of(graph);
}

std::vector<float> trained(const Recipe& recipe) {
  net::Graph graph = net::test::stateful_net(data());
  StagedNumerics numerics(recipe, graph);
  net::train(graph, data(), options_of(), numerics);
  return weights_of(graph);
}

/// The stage after each of those losses.
std::vector<std::size_t> stages_of(const Recipe& recipe, const std::vector<double>& losses) {
  const net::Graph graph = net::test::stateful_net(data());
  StagedNumerics numerics(recipe, graph);
  std::vector<std::size_t> stages;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto epoch = static_cast<std::int64_t>(i);
    numerics.end_epoch({epoch, losses[i], NAN});
    stages.push_back(numerics.stage(epoch + 1));
  }
  return stages;
}

Recipe with_starts(const std::vector<std::string>& starts) {
  std::string text;
  for (const std::string& start : starts)
    text += (text.empty() ? "" : ", ") + (R"j({"from": )j" + start + R"j(, "patch": {}})j");
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "stages": [)j" + text + "]}", "r");
}

}  // namespace

TEST_CASE("stages: training is that of the recipes one after the other", "[fast]") {
  const Recipe recipe = staged(R"j({"epoch": 2})j");
  const std::vector<float> expected = by_hand(recipe.in_stage(0), recipe.in_stage(1), 2);
  CHECK(trained(recipe) == expected);
  CHECK(trained(recipe.in_stage(0)) != expected);
  // Without stages the numerics are those of the recipe, with the same state.
  CHECK(trained(recipe.in_stage(0)) == by_hand(recipe.in_stage(0), recipe.in_stage(0), kEpochs));
  const net::Graph graph = net::test::stateful_net(data());
  net::NamedState plain, alone;
  RecipeNumerics(recipe.in_stage(0), graph).save_state(plain);
  StagedNumerics(recipe.in_stage(0), graph).save_state(alone);
  CHECK(alone == plain);
}

TEST_CASE("stages: a killed run resumes to the same bytes", "[fast]") {
  struct Killed {};
  const Recipe recipe = staged(R"j({"plateau": 0.9})j");  // after the second epoch
  const TemporaryFolder folder;
  std::vector<std::size_t> seen;
  // Stops before epoch `epoch` is stored, or after so many steps.
  const auto run = [&](const std::string& name, std::int64_t epoch, std::int64_t steps) {
    net::Graph graph = net::test::stateful_net(data());
    StagedNumerics numerics(recipe, graph);
    net::TrainHooks hooks;
    hooks.on_step = [&](std::int64_t, std::int64_t, double) {
      if (--steps == 0) throw Killed();
    };
    hooks.on_epoch = [&](const net::EpochMetrics& metrics) {
      if (metrics.epoch == epoch) throw Killed();
    };
    net::RunFile file;
    file.path = folder / name;
    file.every = 5;
    try {
      const auto history = net::train(graph, data(), options_of(), numerics, hooks, file);
      seen.clear();
      for (const net::EpochMetrics& metrics : history)
        seen.push_back(numerics.stage(metrics.epoch));
      return true;
    } catch (const Killed&) {
      return false;
    }
  };
  REQUIRE(run("whole", -1, -1));
  CHECK(seen == std::vector<std::size_t>{0, 0, 1, 1});
  const std::string whole = read_file(folder / "whole");
  const std::int64_t per_epoch =
      (data().train_count() + options_of().batch - 1) / options_of().batch;
  int name = 0;
  // Between the end of an epoch and its state; in the first steps of the next; in the middle.
  for (const auto& [epoch, steps] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, -1}, {2, -1}, {-1, 2 * per_epoch + 1}, {-1, 2 * per_epoch + 6}, {-1, 7}}) {
    INFO("killed at epoch " << epoch << ", step " << steps);
    const std::string file = std::to_string(name++);
    CHECK_FALSE(run(file, epoch, steps));
    CHECK(run(file, -1, -1));
    CHECK(seen == std::vector<std::size_t>{0, 0, 1, 1});
    CHECK(read_file(folder / file) == whole);
  }
}

TEST_CASE("stages: begin at epochs and plateaus, in their order", "[fast]") {
  using Stages = std::vector<std::size_t>;
  const std::string plateau = R"j({"plateau": 0.1})j", third = R"j({"epoch": 3})j";
  CHECK(stages_of(with_starts({third}), {9, 9, 9, 9}) == Stages{0, 0, 1, 1});
  // 0.89 of the best is enough of an improvement, 0.91 is not.
  CHECK(stages_of(with_starts({plateau}), {1, 0.89, 0.79, 0.72, 0.1}) == Stages{0, 0, 0, 1, 1});
  // The best, not the last, is what counts; one stage begins at a time.
  CHECK(stages_of(with_starts({plateau, plateau}), {1, 0.5, 0.6, 0.46, 0.2}) ==
        Stages{0, 0, 1, 2, 2});
  CHECK(stages_of(with_starts({plateau, plateau}), {1, 2, 0.5, 0.4}) == Stages{0, 1, 1, 1});
  // An epoch passes over what has not begun.
  CHECK(stages_of(with_starts({plateau, third, plateau}), {8, 4, 2, 1, 1}) ==
        Stages{0, 0, 2, 2, 3});
  CHECK(stages_of(with_starts({third, plateau}), {1, 1, 1, 1}) == Stages{0, 0, 1, 2});
  // A loss that is no number improves nothing; a negative one can.
  CHECK(stages_of(with_starts({plateau}), {NAN, 1, NAN}) == Stages{0, 0, 1});
  CHECK(stages_of(with_starts({plateau}), {-1, -1.2, -1.25}) == Stages{0, 0, 1});
}

TEST_CASE("stages: turning points are those of the published indicator", "[fast]") {
  std::vector<double> losses;
  for (int t = 0; t < 30; ++t) losses.push_back(2 * std::exp(-0.3 * t) + 0.5);
  // Epochs that stages begin with, where eps is multiplied by alpha after the first and the second.
  const auto begun = [&](double eps, double alpha) {
    std::vector<std::string> starts;
    for (int i = 0; i < 3; ++i, eps *= alpha) starts.push_back(Json{{"turning_point", eps}}.dump());
    const std::vector<std::size_t> stages = stages_of(with_starts(starts), losses);
    std::vector<std::size_t> epochs;
    for (std::size_t e = 1; e < stages.size(); ++e)
      if (stages[e] != stages[e - 1]) epochs.push_back(e + 1);
    return epochs;
  };
  CHECK(begun(0.05, 0.3) == std::vector<std::size_t>{16, 21, 26});
  CHECK(begun(0.15, 0.4) == std::vector<std::size_t>{12, 17, 22});
  // Equal losses: five of them for each stage. A NaN loss begins a stage, as of plateaus.
  using Stages = std::vector<std::size_t>;
  const std::string zero = R"j({"turning_point": 0})j";
  CHECK(stages_of(with_starts({zero, zero}), std::vector<double>(10, 1.0)) ==
        Stages{0, 0, 0, 0, 1, 1, 1, 1, 1, 2});
  CHECK(stages_of(with_starts({zero}), {2, 2, NAN, 2, 2, 2, 2, 2}) ==
        Stages{0, 0, 1, 1, 1, 1, 1, 1});
  // The mean is that of the finite ones among the first losses: 1, not infinite.
  const std::string half = R"j({"turning_point": 0.5})j";
  CHECK(stages_of(with_starts({half}), {INFINITY, 1, 3, 1, 3, 1, 3, 1, 1, 1, 1, 1}) ==
        Stages{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(stages_of(with_starts({R"j({"epoch": 3})j", zero}), std::vector<double>(8, 1.0)) ==
        Stages{0, 0, 1, 1, 1, 1, 1, 2});
}

TEST_CASE("stages: turning points go on after a restart", "[fast]") {
  const net::Graph graph = net::test::stateful_net(data());
  const Recipe recipe = with_starts({R"j({"turning_point": 0.05})j"});
  StagedNumerics whole(recipe, graph);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    net::NamedState state;
    whole.save_state(state);
    StagedNumerics resumed(recipe, graph);
    resumed.load_state(state);
    const double loss = 2 * std::exp(-0.3 * static_cast<double>(epoch)) + 0.5;
    whole.end_epoch({epoch, loss, NAN});
    resumed.end_epoch({epoch, loss, NAN});
    CHECK(resumed.stage(epoch + 1) == whole.stage(epoch + 1));
    CHECK(whole.stage(epoch + 1) == (epoch >= 15));
  }
  for (const std::size_t size : {0, 7, 8 * 2, 8 * 17}) {
    INFO(size);
    CHECK_THAT(message_of([&] {
                 whole.load_state({{"recipe/stages/losses", std::string(size, 'x')}});
               }),
               Catch::StartsWith("state recipe/stages/losses: expected "));
  }
}

TEST_CASE("stages: the loss of the validation decides where there is one", "[fast]") {
  const net::Graph graph = net::test::stateful_net(data());
  const Recipe recipe = with_starts({R"j({"plateau": 0.1})j"});
  StagedNumerics numerics(recipe, graph);
  numerics.end_epoch({0, 1, 1});
  numerics.end_epoch({1, 1, 0.5});
  CHECK(numerics.stage(2) == 0);
  numerics.end_epoch({2, 0.1, 0.5});
  CHECK(numerics.stage(2) == 0);
  CHECK(numerics.stage(3) == 1);
}

TEST_CASE("stages: state goes on where its part of the recipe does", "[fast]") {
  const net::Graph graph = net::test::stateful_net(data());
  const net::NamedState all = {{"recipe/loss_scale", "1"},
                               {"recipe/mask/conv", "2"},
                               {"recipe/mask/fc", "3"},
                               {"recipe/threshold/fc/dgrad", "4"},
                               {"recipe/history/fc/weight/fprop", "5"},
                               {"recipe/counts/fc/weight/fprop", "6"},
                               {"recipe/update/residual/fc.weight", "7"},
                               {"recipe/exchange/topk/worker0/fc.weight", "8"}};
  const auto kept = [&](const std::string& patch) {
    const Recipe recipe = Recipe::parse_text(
        R"j({"numemu_recipe": 1, "exchange": "topk", "roles": {"weight": {"mask": "greedy(2:4)"}},
            "update": {"loss_scale": "static(4)", "master": "bfloat16", "rule": "residual"},
            "stages": [{"from": {"epoch": 1}, "patch": )j" +
            patch + "}]}",
        "r");
    std::string values;
    for (const auto& [name, value] :
         carried_state({recipe.in_stage(0), graph}, {recipe.in_stage(1), graph}, all))
      values += value;
    return values;
  };
  CHECK(kept("{}") == "12345678");
  CHECK(kept(R"j({"roles": {"weight": {"format": "int8"}, "saved": {"format": "int8"}}})j") ==
        "12345678");
  CHECK(kept(R"j({"update": {"loss_scale": "static(8)"}})j") == "2345678");
  CHECK(kept(R"j({"roles": {"weight": {"mask": "greedy(1:4)"}}})j") == "145678");
  CHECK(kept(R"j({"layers": [{"match": "fc", "roles": {"weight": {"mask": null}}}]})j") ==
        "1245678");
  CHECK(kept(R"j({"roles": {"gradient": {"mask": "mvue(1:2)"}}})j") == "1235678");
  CHECK(kept(R"j({"update": {"rule": "residual(bfloat16)"}})j") == "1234568");
  CHECK(kept(R"j({"layers": [{"match": "fc", "update": {"rule": null}}]})j") == "1234568");
  CHECK(kept(R"j({"exchange": "topk(0.5)"})j") == "1234567");
}

TEST_CASE("stages: every policy keeps its state under its key and name", "[fast]") {
  net::TrainOptions options = options_of();
  options.workers = 2;
  for (const PolicyKind* kind : all_policies()) {
    // Keys of roles and updates have their own names, which carried_state() lists.
    // A transform has no state, and no block of channels to rotate in this network; nor has it
    // quantizers. Codes between operators serve inference alone.
    if (kind->chosen_by != nullptr || kind->key == "transform" || kind->key == "quantizers" ||
        kind->key == "edges")
      continue;
    INFO(kind->key << " " << kind->name);
    const std::string object(kind->key.substr(0, kind->key.find('.')));
    Json recipe = {{"numemu_recipe", 1},
                   {"update", {{"optimizer", "sgd"}, {"master", "bfloat16"}}}};
    if (object != kind->key) {
      recipe["update"]["rule"] = std::string(kind->name);
    } else {
      recipe[object] = kind->name.empty() ? Json::object() : Json(std::string(kind->name));
    }
    if (kind->key == "learn")
      recipe["roles"] = {{"weight", {{"format", "int8"}}}, {"activation", {{"format", "int8"}}}};
    net::Graph graph = net::test::stateful_net(data());
    RecipeNumerics numerics(Recipe::parse(recipe, "r"), graph);
    const std::vector<net::Parameter*> parameters = graph.parameters();
    const auto optimizer = net::make_optimizer(
        options, std::vector<const net::Parameter*>(parameters.begin(), parameters.end()));
    net::StepInput input;
    input.samples = {0, 1, 2, 3};
    input.learning_rate = 0.01;
    input.x = data().train_batch(input.samples, input.targets);
    net::training_step(graph, input, options, *optimizer, numerics);
    net::NamedState state;
    numerics.save_state(state);
    for (const auto& [name, bytes] : state) {
      INFO(name);
      const bool of_roles = name.starts_with("recipe/loss_scale") ||
                            name.starts_with("recipe/counts/") ||
                            name.starts_with("recipe/history/");
      CHECK((of_roles || name.starts_with("recipe/" + object + "/" + std::string(kind->name))));
    }
  }
}

TEST_CASE("stages: every stage is checked before the first step", "[fast]") {
  const net::Graph graph = net::test::stateful_net(data());
  const auto refused = [&](const std::string& patch) {
    const Recipe recipe = Recipe::parse_text(
        R"j({"numemu_recipe": 1, "stages": [{"from": {"epoch": 1}, "patch": )j" + patch + "}]}",
        "r");
    return message_of([&] { StagedNumerics(recipe, graph, "r.json"); });
  };
  CHECK(refused(R"j({"layers": [{"match": "conv9"}]})j")
            .starts_with("r.json: stages[0].patch: layers[0].match: 'conv9' matches no layer"));
  CHECK(refused(R"j({"update": {"rule": "residual"}})j")
            .starts_with(
                "r.json: stages[0].patch: update.rule: residual: expected an update.master"));
  CHECK(refused(R"j({"roles": {"weight": {"format": "int8", "granularity": "channel"}},
                     "gemms": {"dgrad": {"unit": "nvidia.a100.mma.s8.s32"}}})j")
            .starts_with("r.json: stages[0].patch: roles.weight.granularity: dgrad of layer conv"));
  // One recipe at a time is not all of them.
  CHECK(message_of([&] {
          RecipeNumerics(staged(R"j({"epoch": 2})j"), graph, "r.json");
        }).starts_with("r.json: stages: expected"));
}

TEST_CASE("stages: damaged states are refused", "[fast]") {
  const net::Graph graph = net::test::stateful_net(data());
  const Recipe recipe = with_starts({R"j({"epoch": 3})j"});
  StagedNumerics numerics(recipe, graph);
  for (const std::size_t size : {0, 7, 8 * 3}) {
    INFO(size);
    CHECK_THAT(message_of([&] {
                 numerics.load_state({{"recipe/stages", std::string(size, 'x')}});
               }),
               Catch::StartsWith("state recipe/stages: expected "));
  }
}

}  // namespace staged_numerics_test
